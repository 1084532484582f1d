-- State: the key-value data of a cluster. Postgres decides, Redis repeats.

-- One row per key; of an owned key (`singleton-state:<name>`, `schedule-state:<name>`) one per state.version.
-- A deleted or swept entry stays as a tombstone for a week: it keeps the version from coming back, and
-- Watch tells the deletion. After that the clock does: versions are never below unix microseconds.
CREATE TABLE baton.state (
    cluster_id     integer NOT NULL,
    key            text COLLATE "C" NOT NULL,   -- byte order: a prefix is a range
    state_version  integer NOT NULL DEFAULT 0,  -- declared by the owner; 0: not an owned key
    version        bigint NOT NULL,
    value          bytea,                       -- NULL: a tombstone
    ttl            interval,
    updated_at     timestamptz NOT NULL,
    expires_at     timestamptz,
    -- Who wrote it, and the oldest transaction that was under way then: Watch needs both, because commits do
    -- not become visible in the order of their versions.
    xact           xid8 NOT NULL DEFAULT pg_current_xact_id(),
    xact_horizon   xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    PRIMARY KEY (cluster_id, key, state_version)
);
-- Values are mostly small or already compressed by the app: compressing costs more than it saves.
ALTER TABLE baton.state ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE INDEX state_by_version ON baton.state (cluster_id, version);
CREATE INDEX state_expiring ON baton.state (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX state_tombstone ON baton.state (updated_at) WHERE value IS NULL;

-- What was answered to a Put with a request_id, for an hour: asking again gets the same answer.
CREATE TABLE baton.state_request (
    cluster_id  integer NOT NULL,
    key         text COLLATE "C" NOT NULL,
    request_id  text COLLATE "C" NOT NULL,
    digest      bytea NOT NULL,                 -- of the value: the same id with another value is a mistake
    version     bigint NOT NULL,
    updated_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    PRIMARY KEY (cluster_id, key, request_id)
);
CREATE INDEX state_request_age ON baton.state_request (updated_at);

-- Bytes that could not be decoded by the declared schema, kept for whoever wants to look.
CREATE TABLE baton.state_set_aside (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id     integer NOT NULL,
    key            text COLLATE "C" NOT NULL,
    state_version  integer NOT NULL,
    version        bigint NOT NULL,
    value          bytea NOT NULL,
    problem        text NOT NULL,
    set_aside_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (cluster_id, key, state_version, version)
);

CREATE FUNCTION baton.unix_microseconds(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (extract(epoch FROM at) * 1000000)::bigint
$$;

-- Writes one entry; no row if a compare-and-set was lost. `expected`: NULL any, 0 none.
CREATE FUNCTION baton.put_state(
    cluster_id integer, key text, value bytea, state_version integer, ttl interval, expected bigint
) RETURNS TABLE (new_version bigint, written_at timestamptz, gone_at timestamptz) LANGUAGE sql VOLATILE AS $$
    INSERT INTO baton.state AS s (cluster_id, key, state_version, version, value, ttl, updated_at, expires_at)
    SELECT put_state.cluster_id, put_state.key, put_state.state_version,
           -- All entries of a key share one line of versions, whatever their state.version.
           greatest(coalesce((SELECT max(o.version) + 1 FROM baton.state o
                              WHERE o.cluster_id = put_state.cluster_id AND o.key = put_state.key), 0),
                    baton.unix_microseconds(clock_timestamp())),
           put_state.value, put_state.ttl, clock_timestamp(), clock_timestamp() + put_state.ttl
    WHERE coalesce(expected, 0) = 0
       OR EXISTS (SELECT 1 FROM baton.state o
                  WHERE o.cluster_id = put_state.cluster_id AND o.key = put_state.key
                    AND o.state_version = put_state.state_version AND o.version = expected)
    ON CONFLICT ON CONSTRAINT state_pkey DO UPDATE
    SET version = greatest(s.version + 1, excluded.version, baton.unix_microseconds(clock_timestamp())),
        value = excluded.value, ttl = excluded.ttl,
        updated_at = clock_timestamp(), expires_at = clock_timestamp() + excluded.ttl,
        xact = excluded.xact, xact_horizon = excluded.xact_horizon
    WHERE expected IS NULL
       OR expected = CASE WHEN s.value IS NULL OR s.expires_at <= clock_timestamp() THEN 0 ELSE s.version END
    RETURNING s.version, s.updated_at, s.expires_at
$$;

-- Writes owned state in the caller's transaction, which has checked that the run is live; its new version.
-- The time to live is at least 90 s: an entry must not expire between two heartbeats of whoever leads it.
CREATE FUNCTION baton.put_owned_state(
    cluster_id integer, key text, value bytea, state_version integer, ttl interval
) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT p.new_version FROM baton.put_state(
        cluster_id, key, value, state_version,
        CASE WHEN ttl IS NOT NULL THEN greatest(ttl, interval '90 s') END, NULL) p
$$;
