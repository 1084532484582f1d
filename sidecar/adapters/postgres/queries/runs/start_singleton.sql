-- runs/start_singleton: creates a run of a singleton in state running. Earlier runs of it that nobody ended have failed.
-- last_run_at is written at the start, because a run may last for months.
WITH fence AS MATERIALIZED (
    -- include: fence
), abandoned AS (
    UPDATE baton.run SET state = 'ended', outcome = 'failed', finished_at = clock_timestamp(),
        error = 'its term ended before it did', error_code = 'ABANDONED',
        history = baton.run_event(history, 'ended', 'failed', attempt, %(epoch)s, %(runner_id)s, 'leader changed')
    WHERE group_id = %(group_id)s AND kind = 'singleton' AND name = %(name)s AND state = 'running'
      AND epoch <= %(epoch)s AND EXISTS (SELECT FROM fence)
    RETURNING error
), over AS MATERIALIZED (
    SELECT count(*) AS lives, coalesce(max(error), '') AS error FROM abandoned
), created AS (
    INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, due_at, attempt, epoch, runner_id,
        started_at, attempt_started_at, history)
    SELECT %(cluster_id)s, %(group_id)s, 'singleton', %(name)s, clock_timestamp(), 'running', clock_timestamp(), 1,
        %(epoch)s, %(runner_id)s, clock_timestamp(), clock_timestamp(),
        baton.run_event('[]', 'running', NULL, 1, %(epoch)s, %(runner_id)s, 'delivered')
    FROM fence
    RETURNING id, tick
), remembered AS (
    INSERT INTO baton.execution AS e (cluster_id, entity_type, name, last_run_at, run_count, last_error)
    SELECT %(cluster_id)s, 'singleton', %(name)s, created.tick, over.lives, over.error FROM created, over
    ON CONFLICT (cluster_id, entity_type, name) DO UPDATE SET
        last_run_at = greatest(e.last_run_at, excluded.last_run_at),
        run_count = e.run_count + excluded.run_count,
        last_error = CASE WHEN excluded.run_count > 0 THEN excluded.last_error ELSE e.last_error END
)
SELECT EXISTS (SELECT FROM fence) AS is_current, created.id, created.tick, execution.last_run_at, execution.last_success_at,
    coalesce(execution.run_count, 0) + over.lives AS run_count,
    CASE WHEN over.lives > 0 THEN over.error ELSE execution.last_error END AS last_error,
    execution.average_seconds, execution.last_seconds
FROM over LEFT JOIN created ON true
LEFT JOIN baton.execution ON execution.cluster_id = %(cluster_id)s AND execution.entity_type = 'singleton'
    AND execution.name = %(name)s;
