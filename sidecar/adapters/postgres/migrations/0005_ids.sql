-- Machine numbers of snowflake ids, leased by runners.

-- `ceiling_ms` is the end of the time reserved under this number, in milliseconds since 2025-01-01: whoever
-- takes the number next starts there. So even a holder that slept through the end of its lease and goes on
-- cannot repeat an id.
CREATE TABLE baton.machine (
    cluster_id  integer NOT NULL REFERENCES baton.cluster (id),
    number      smallint NOT NULL CHECK (number BETWEEN 0 AND 1023),
    runner_id   text NOT NULL,
    expires_at  timestamptz NOT NULL,
    ceiling_ms  bigint NOT NULL,
    PRIMARY KEY (cluster_id, number)
);
