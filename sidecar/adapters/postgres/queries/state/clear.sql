-- state/clear: turns the next entries under a prefix into tombstones, except owned ones.
-- Locked in the order of keys, as state/put does; MATERIALIZED: the LIMIT holds whatever the plan.
WITH doomed AS MATERIALIZED (
    SELECT s.key, (s.expires_at IS NULL OR s.expires_at > clock_timestamp()) AS was_live
    FROM baton.state s
    WHERE s.cluster_id = %(cluster_id)s AND s.state_version = 0 AND s.key > %(after)s
      AND s.key >= %(prefix)s AND s.key < %(prefix_end)s AND s.value IS NOT NULL
    ORDER BY s.key LIMIT %(limit)s
    FOR UPDATE
)
UPDATE baton.state s
SET value = NULL, ttl = NULL, expires_at = NULL, updated_at = clock_timestamp(),
    version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
    xact = pg_current_xact_id(), xact_horizon = pg_snapshot_xmin(pg_current_snapshot())
FROM doomed d
WHERE s.cluster_id = %(cluster_id)s AND s.key = d.key AND s.state_version = 0
RETURNING s.key, s.version, s.updated_at, d.was_live, statement_timestamp() AS as_of
