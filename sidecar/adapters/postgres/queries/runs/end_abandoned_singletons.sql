-- runs/end_abandoned_singletons: ends runs of singletons in a group that was removed: they have failed.
-- Guarded by the group's last epoch: a takeover of the group comes before or after.
-- A singleton that runs in another group by now keeps its last error.
WITH fence AS MATERIALIZED (
    -- include: fence
), abandoned AS MATERIALIZED (
    SELECT id FROM baton.run
    WHERE group_id = %(group_id)s AND kind = 'singleton' AND state = 'running' AND epoch <= %(epoch)s
      AND EXISTS (SELECT FROM fence)
    ORDER BY id LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), ended AS (
    UPDATE baton.run SET state = 'ended', outcome = 'failed', finished_at = clock_timestamp(),
        error = 'its term ended before it did', error_code = 'ABANDONED',
        history = baton.run_event(history, 'ended', 'failed', attempt, %(epoch)s, %(runner_id)s, 'group removed')
    WHERE id = ANY (ARRAY (SELECT id FROM abandoned))
    RETURNING id, cluster_id, name, tick, error
), remembered AS (
    INSERT INTO baton.execution AS e (cluster_id, entity_type, name, last_run_at, run_count, last_error)
    SELECT cluster_id, 'singleton', name, max(tick), count(*), max(error) FROM ended
    GROUP BY cluster_id, name ORDER BY name
    ON CONFLICT (cluster_id, entity_type, name) DO UPDATE SET
        last_run_at = greatest(e.last_run_at, excluded.last_run_at),
        run_count = e.run_count + excluded.run_count,
        last_error = CASE WHEN e.last_run_at > excluded.last_run_at THEN e.last_error ELSE excluded.last_error END
)
SELECT EXISTS (SELECT FROM fence) AS is_current, ended.id FROM (SELECT) AS one LEFT JOIN ended ON true;
