-- state/expire: turns expired entries, the longest gone first, into tombstones.
-- SKIP LOCKED: sweepers of several pods, and writers, never wait for each other here.
WITH expired AS MATERIALIZED (
    SELECT s.key, s.state_version FROM baton.state s
    WHERE s.cluster_id = %(cluster_id)s AND s.expires_at <= clock_timestamp()
    ORDER BY s.expires_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE baton.state s
SET value = NULL, ttl = NULL, expires_at = NULL, updated_at = clock_timestamp(),
    version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
    xact = pg_current_xact_id(), xact_horizon = pg_snapshot_xmin(pg_current_snapshot())
FROM expired e
WHERE s.cluster_id = %(cluster_id)s AND s.key = e.key AND s.state_version = e.state_version
RETURNING s.key
