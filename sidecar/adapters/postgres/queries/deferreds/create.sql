-- deferreds/create: creates a deferred, or finds it; returns its salt. No row: the run is not live.
-- The term and the run are locked FOR SHARE until the commit, so a takeover or a completion comes before or after.
-- After a change of leader the deferred usually exists: then nothing changes, and the salt is returned once the row is
-- replicated. DO UPDATE: of two concurrent creators the second waits for the first, and both get the same row.
WITH ref AS NOT MATERIALIZED (
    SELECT %(run_id)s::bigint AS run_id, %(attempt)s::bigint AS attempt
), fence AS MATERIALIZED (
    -- include: fence_of_run
), live AS MATERIALIZED (
    SELECT run.id FROM baton.run JOIN ref ON
        -- include: live_run
    WHERE run.group_id = (SELECT group_id FROM fence)
    FOR SHARE OF run
), maker AS MATERIALIZED (
    SELECT id AS run_id FROM live
    UNION ALL
    SELECT 0 WHERE %(run_id)s::bigint IS NULL
), found AS MATERIALIZED (
    SELECT d.salt, baton.await_replication_at_commit() FROM baton.deferred d JOIN maker m ON d.run_id = m.run_id
    WHERE d.cluster_id = %(cluster_id)s AND d.name = %(name)s
), made AS (
    INSERT INTO baton.deferred AS d (id, cluster_id, run_id, name, salt, expires_at)
    SELECT %(id)s, %(cluster_id)s, m.run_id, %(name)s, %(salt)s,
           clock_timestamp() + make_interval(secs => %(ttl_seconds)s)
    FROM maker m WHERE NOT EXISTS (SELECT FROM found)
    ON CONFLICT (cluster_id, run_id, name) DO UPDATE SET name = d.name
    RETURNING d.salt
)
SELECT salt FROM found UNION ALL SELECT salt FROM made
