-- Clusters, groups, terms and runners: what the election stands on.

CREATE TABLE baton.cluster (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    app_name    text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The unit of leadership. Its id is the second number of the advisory lock.
CREATE TABLE baton.leader_group (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id  integer NOT NULL REFERENCES baton.cluster (id),
    name        text NOT NULL,
    UNIQUE (cluster_id, name)
);

-- Who leads, under which epoch. Written only at takeover and at release; every fenced write locks this row
-- FOR SHARE, so nothing that happens once a second may touch it.
CREATE TABLE baton.term (
    group_id      integer PRIMARY KEY REFERENCES baton.leader_group (id),
    epoch         bigint NOT NULL DEFAULT 0,
    runner_id     text NOT NULL DEFAULT '',
    host          text NOT NULL DEFAULT '',
    clean         boolean NOT NULL DEFAULT true,
    timeline      text NOT NULL DEFAULT '',   -- the server timeline on which `clean` was written
    taken_at      timestamptz,
    released_at   timestamptz
);

-- The holder's heartbeat, apart from `term`: in one row, a ping would wait behind every fenced write.
CREATE TABLE baton.beat (
    group_id      integer PRIMARY KEY REFERENCES baton.leader_group (id),
    epoch         bigint NOT NULL DEFAULT 0,
    sequence      bigint NOT NULL DEFAULT 0,
    timeline      text NOT NULL DEFAULT ''
) WITH (fillfactor = 10);   -- one row updated each second: room for HOT updates on its page

-- Somebody asked the leader of this epoch to hand over; its next ping sees it.
CREATE TABLE baton.resign_request (
    group_id      integer PRIMARY KEY REFERENCES baton.leader_group (id),
    epoch         bigint NOT NULL,
    requested_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row per living sidecar process, refreshed every few seconds.
CREATE TABLE baton.runner (
    runner_id       text PRIMARY KEY,
    cluster_id      integer NOT NULL REFERENCES baton.cluster (id),
    host            text NOT NULL,
    version         text NOT NULL,
    campaigning     boolean NOT NULL,            -- wants to lead: its app is healthy and it is not draining
    campaigning_since timestamptz,
    config_revision bigint NOT NULL DEFAULT 0,
    config_loaded_at timestamptz,
    started_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX runner_by_cluster ON baton.runner (cluster_id, seen_at);
