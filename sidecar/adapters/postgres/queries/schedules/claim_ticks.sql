-- schedules/claim_ticks: turns due ticks into runs, once each, and advances their schedules. A plan counts only if its
-- schedule has not changed since the plan was made, and if its newest tick is due by the database's clock.
-- ORDER BY id: every batch locks schedules in the same order.
-- synchronous_commit is off: rows and watermark are kept or lost together, and the claim of a run, which is durable
-- before the app is called, comes later in the WAL.
WITH fence AS MATERIALIZED (
    -- include: fence
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, set_config('synchronous_commit', 'off', true)
), plan AS MATERIALIZED (
    SELECT * FROM unnest(
        %(ids)s::bigint[], %(versions)s::bigint[], %(watermarks)s::timestamptz[], %(due_ats)s::timestamptz[],
        %(new_watermarks)s::timestamptz[], %(next_ticks)s::timestamptz[], %(next_due_ats)s::timestamptz[],
        %(missed)s::bigint[]
    ) AS p (id, version, watermark, due_at, new_watermark, next_tick, next_due_at, missed)
), held AS MATERIALIZED (
    -- By key alone, and compared afterwards: on tables without statistics the planner would compare each schedule with
    -- each plan.
    SELECT schedule.* FROM baton.schedule
    WHERE schedule.id = ANY (%(ids)s::bigint[]) AND EXISTS (SELECT FROM fence)
    ORDER BY schedule.id
    FOR NO KEY UPDATE
), ready AS MATERIALIZED (
    SELECT held.id, held.cluster_id, held.name, coalesce(held.definition ->> 'overlap', 'allow') AS overlap
    FROM held JOIN plan ON plan.id = held.id
    WHERE held.group_id = %(group_id)s AND held.retired_at IS NULL AND held.version = plan.version
      AND held.watermark = plan.watermark AND plan.due_at <= (SELECT now FROM clock)
), created AS (
    INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, tick_last, tick_count, overlap, state,
        outcome, reason, due_at, finished_at, history)
    SELECT ready.cluster_id, %(group_id)s, 'schedule', ready.name, ready.id, step.tick, step.tick_last, step.tick_count,
        ready.overlap, CASE WHEN step.reason IS NULL THEN 'queued' ELSE 'ended' END,
        CASE WHEN step.reason IS NOT NULL THEN 'skipped' END, step.reason, step.due_at,
        CASE WHEN step.reason IS NOT NULL THEN clock_timestamp() END,
        baton.run_event('[]', CASE WHEN step.reason IS NULL THEN 'queued' ELSE 'ended' END,
            CASE WHEN step.reason IS NOT NULL THEN 'skipped' END, 0, %(epoch)s, %(runner_id)s,
            coalesce(step.reason, 'due'))
    FROM unnest(%(step_ids)s::bigint[], %(ticks)s::timestamptz[], %(tick_lasts)s::timestamptz[],
                %(tick_counts)s::integer[], %(step_due_ats)s::timestamptz[], %(reasons)s::text[]
    ) WITH ORDINALITY AS step (id, tick, tick_last, tick_count, due_at, reason, place)
    JOIN ready ON ready.id = step.id
    ORDER BY step.place
    ON CONFLICT (cluster_id, name, tick) WHERE kind = 'schedule' DO NOTHING
    RETURNING tick_count, reason
), moved AS (
    UPDATE baton.schedule SET watermark = plan.new_watermark, next_tick = plan.next_tick,
        next_due_at = plan.next_due_at, missed_total = missed_total + plan.missed
    FROM plan JOIN ready ON ready.id = plan.id WHERE schedule.id = plan.id
    RETURNING schedule.id
)
SELECT EXISTS (SELECT FROM fence) AS is_current, (SELECT now FROM clock) AS now,
    ARRAY (SELECT id FROM moved) AS moved, made.rows, made.ticks, made.reason
FROM (SELECT) AS one
LEFT JOIN (SELECT reason, count(*) AS rows, sum(tick_count) AS ticks FROM created GROUP BY reason) AS made ON true;
