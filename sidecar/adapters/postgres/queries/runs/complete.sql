-- runs/complete: writes the results of attempts, and the last result of their singleton or schedule. Accepted only for the
-- live attempt of this term: a run that is not accepted is not returned.
-- SKIP LOCKED: a row that another session has locked, the run's or its schedule's, holds up no other run. Its run is not
-- returned either, and is written later. CTEs that lock rows are never inlined.
-- Rows are found by id alone before anything is compared: joining the arrays on schedule and attempt as well makes the
-- planner loop over the table.
WITH fence AS (
    -- include: fence
), ref AS (
    SELECT * FROM unnest(
        %(run_ids)s::int8[], %(attempts)s::int[], %(outcomes)s::text[], %(reasons)s::text[],
        %(waits)s::float8[], %(used_retries)s::bool[], %(delivereds)s::bool[], %(results)s::bytea[],
        %(errors)s::text[], %(error_codes)s::text[], %(causes)s::text[], %(missed_totals)s::int8[]
    ) AS r (run_id, attempt, outcome, reason, wait, used, delivered, result, error, code, cause, missed)
), held AS (
    -- Schedules of runs that will wait, locked so that a deletion comes before or after; and before their runs, as a
    -- deletion does. A run takes the schedule's current overlap policy.
    SELECT id, retired_at, coalesce(definition ->> 'overlap', 'allow') AS overlap FROM baton.schedule
    WHERE id = ANY (ARRAY (SELECT schedule_id FROM baton.run
                           WHERE id = ANY (ARRAY (SELECT run_id FROM ref WHERE outcome IS NULL))))
      AND EXISTS (SELECT FROM fence)
    ORDER BY id FOR SHARE SKIP LOCKED
), live AS (
    SELECT id, attempt, epoch, state, cancel_reason, schedule_id FROM baton.run
    WHERE id = ANY (%(run_ids)s::int8[]) AND EXISTS (SELECT FROM fence) AND (SELECT count(*) FROM held) >= 0
    ORDER BY id FOR UPDATE SKIP LOCKED
), asked AS (
    -- A run that would wait ends instead if it was cancelled or its schedule was retired.
    SELECT ref.*, overlap, cancel_reason, outcome IS NULL AND (cancel_reason IS NOT NULL OR retired_at IS NOT NULL) AS stopped
    FROM live AS run JOIN ref ON
        -- include: live_run
    LEFT JOIN held ON held.id = schedule_id
    WHERE outcome IS NOT NULL OR held.id IS NOT NULL OR schedule_id IS NULL
), decided AS MATERIALIZED (
    SELECT run_id, CASE WHEN outcome IS NULL AND NOT stopped THEN 'waiting' ELSE 'ended' END AS state,
        CASE WHEN stopped THEN 'skipped' ELSE outcome END AS outcome,
        CASE WHEN stopped THEN coalesce(cancel_reason, 'operator') ELSE reason END AS reason,
        overlap, wait, used, delivered, result, error, code, cause, missed
    FROM asked
), changed AS (
    UPDATE baton.run SET
        state = d.state, outcome = d.outcome, reason = d.reason, error = d.error, error_code = d.code,
        due_at = CASE WHEN d.outcome IS NULL
                      THEN clock_timestamp() + make_interval(secs => d.wait) ELSE due_at END,
        overlap = coalesce(d.overlap, run.overlap), failures = failures + d.used::int,
        attempts_free = attempts_free + (NOT d.delivered)::int,
        result = CASE WHEN d.outcome = 'succeeded' THEN d.result END,
        finished_at = CASE WHEN d.outcome IS NOT NULL THEN clock_timestamp() END,
        history = baton.run_event(history, d.state, d.outcome, attempt, epoch, runner_id, d.cause)
    FROM decided AS d WHERE run.id = d.run_id AND run.id = ANY (%(run_ids)s::int8[])
    -- Runs that succeeded or failed count, and those of a singleton also if they were handed over.
    RETURNING run.*, d.missed, extract(epoch FROM finished_at - attempt_started_at)::float8 AS seconds,
        d.outcome IN ('succeeded', 'failed') OR (kind = 'singleton' AND d.outcome = 'skipped') AS counts
), remembered AS (
    INSERT INTO baton.execution AS e
        (cluster_id, entity_type, name, last_run_at, last_success_at, run_count, last_error, missed_seen,
         average_seconds, last_seconds)
    -- Every attempt updates last_run_at.
    -- missed_seen: the count that the run received; ticks missed since are reported to the next run.
    SELECT cluster_id, CASE WHEN kind = 'singleton' THEN 'singleton' ELSE 'schedule' END, name,
        max(started_at), max(finished_at) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE counts),
        coalesce((array_agg(error ORDER BY finished_at DESC) FILTER (WHERE counts))[1], ''),
        coalesce(max(missed) FILTER (WHERE counts), 0), avg(seconds) FILTER (WHERE outcome = 'succeeded'),
        (array_agg(seconds ORDER BY finished_at DESC) FILTER (WHERE counts))[1]
    FROM changed GROUP BY 1, 2, 3 ORDER BY 2, 3
    ON CONFLICT (cluster_id, entity_type, name) DO UPDATE SET
        last_run_at = greatest(e.last_run_at, excluded.last_run_at),
        last_success_at = greatest(e.last_success_at, excluded.last_success_at),
        run_count = e.run_count + excluded.run_count,
        last_error = CASE WHEN excluded.run_count > 0 THEN excluded.last_error ELSE e.last_error END,
        missed_seen = greatest(e.missed_seen, excluded.missed_seen),
        average_seconds = coalesce(e.average_seconds * 0.8 + excluded.average_seconds * 0.2,
                                   excluded.average_seconds, e.average_seconds),
        last_seconds = coalesce(excluded.last_seconds, e.last_seconds)
)
SELECT EXISTS (SELECT FROM fence) AS is_current, id, kind, state, outcome, reason, finished_at, seconds
FROM (SELECT) AS one LEFT JOIN changed ON true;
