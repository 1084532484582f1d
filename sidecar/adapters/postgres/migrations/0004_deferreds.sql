-- Deferreds: durable promises, found by the SHA-256 of their token.

-- A token is the HMAC of its deferred's salt under this key, so that it can be given out again. Apart from the
-- deferreds: whoever may read only those cannot complete one. gen_random_uuid() draws from the system's
-- cryptographic source: 244 random bits.
CREATE TABLE baton.deferred_key (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    key  bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
);
INSERT INTO baton.deferred_key DEFAULT VALUES;

CREATE TABLE baton.deferred (
    id           bytea PRIMARY KEY,               -- SHA-256 of the token
    cluster_id   integer NOT NULL,
    run_id       bigint NOT NULL DEFAULT 0,       -- 0: of no run, the name alone identifies it
    name         text COLLATE "C" NOT NULL,
    salt         bytea NOT NULL,
    state        text NOT NULL DEFAULT 'pending'
                     CHECK (state IN ('pending', 'completed', 'failed', 'expired')),
    value        bytea NOT NULL DEFAULT '',
    error        text NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at  timestamptz,
    expires_at   timestamptz,                     -- NULL: never
    UNIQUE (cluster_id, run_id, name),
    CHECK ((state = 'pending') = (finished_at IS NULL))
);
-- Pruning: by when it ended or was bound to end; and pending ones for whose run nobody will ask again.
CREATE INDEX deferred_ended ON baton.deferred (cluster_id, (coalesce(finished_at, expires_at)));
CREATE INDEX deferred_endless ON baton.deferred (cluster_id, created_at)
    WHERE finished_at IS NULL AND expires_at IS NULL AND run_id <> 0;
