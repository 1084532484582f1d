-- state/clear: deletes the next entries under a prefix, except owned ones.
-- Locked in the order of keys, as in shared/put_state; MATERIALIZED: the LIMIT holds whatever the plan.
-- There is always a row, with a key of NULL if there was nothing to delete. That answer waits for replication: an earlier
-- attempt of the same caller may have deleted the entries.
WITH found AS MATERIALIZED (
    SELECT s.key, (s.expires_at IS NULL OR s.expires_at > clock_timestamp()) AS was_live
    FROM baton.state s
    WHERE s.cluster_id = %(cluster_id)s AND s.state_version = 0 AND s.key > %(after)s
      AND s.key >= %(prefix)s AND s.key < %(prefix_end)s AND s.value IS NOT NULL
    ORDER BY s.key LIMIT %(limit)s
    FOR UPDATE
), cleared AS (
    UPDATE baton.state s
    SET
        -- include: tombstone
    FROM found d
    WHERE s.cluster_id = %(cluster_id)s AND s.key = d.key AND s.state_version = 0
    RETURNING s.key, s.version, s.updated_at, d.was_live
)
SELECT c.key, c.version, c.updated_at, c.was_live, statement_timestamp() AS as_of,
       CASE WHEN c.key IS NULL THEN baton.await_replication_at_commit() END AS awaited
FROM (VALUES (1)) AS always (one) LEFT JOIN cleared c ON true
