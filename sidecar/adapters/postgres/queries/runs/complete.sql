-- Write what became of attempts that are over, and remember it for their singleton or schedule. Accepted only
-- for the live attempt of this very term: the others are simply not among the rows returned.
-- The rows are found by id alone before anything is compared: joining the arrays on owner and attempt as well
-- makes the planner loop over the table.
WITH fence AS MATERIALIZED (
    SELECT 1 FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
), report AS (
    SELECT * FROM unnest(
        %(run_ids)s::int8[], %(attempts)s::int[], %(outcomes)s::text[], %(reasons)s::text[],
        %(waits)s::float8[], %(used_retries)s::bool[], %(delivereds)s::bool[], %(results)s::bytea[],
        %(errors)s::text[], %(error_codes)s::text[], %(causes)s::text[], %(missed_totals)s::int8[]
    ) AS r (run_id, attempt, outcome, reason, wait, used_retry, delivered, result, error, error_code, cause, missed_total)
), held AS MATERIALIZED (
    -- Of what is going to wait the schedule is held: a deletion is seen here, or sees what waits. Before the run is:
    -- a deletion holds its schedule too when it comes to its runs. Whether it may overlap is what the schedule says now.
    SELECT id, retired_at, coalesce(definition ->> 'overlap', 'allow') AS overlap FROM baton.schedule
    WHERE id = ANY (ARRAY (SELECT schedule_id FROM baton.run
                           WHERE id = ANY (ARRAY (SELECT run_id FROM report WHERE outcome IS NULL))))
      AND EXISTS (SELECT FROM fence)
    ORDER BY id FOR SHARE
), live AS MATERIALIZED (
    SELECT id, attempt, epoch, state, cancel_reason, schedule_id FROM baton.run
    WHERE id = ANY (%(run_ids)s::bigint[]) AND EXISTS (SELECT FROM fence) AND (SELECT count(*) FROM held) >= 0
    ORDER BY id FOR UPDATE
), asked AS (
    -- Somebody asked for its end, or its schedule was retired, while it was going to wait: it ends.
    SELECT report.*, overlap, cancel_reason, outcome IS NULL AND (cancel_reason IS NOT NULL OR retired_at IS NOT NULL) AS stopped
    FROM live JOIN report ON report.run_id = live.id LEFT JOIN held ON held.id = schedule_id
    WHERE state = 'running' AND live.attempt = report.attempt AND epoch = %(epoch)s
), decided AS MATERIALIZED (
    SELECT run_id, CASE WHEN outcome IS NULL AND NOT stopped THEN 'waiting' ELSE 'ended' END AS state,
        CASE WHEN stopped THEN 'skipped' ELSE outcome END AS outcome,
        CASE WHEN stopped THEN coalesce(cancel_reason, 'operator') ELSE reason END AS reason,
        overlap, wait, used_retry, delivered, result, error, error_code, cause, missed_total
    FROM asked
), changed AS (
    UPDATE baton.run SET
        state = d.state, outcome = d.outcome, reason = d.reason, error = d.error, error_code = d.error_code,
        due_at = CASE WHEN d.outcome IS NULL
                      THEN clock_timestamp() + make_interval(secs => d.wait) ELSE due_at END,
        overlap = coalesce(d.overlap, run.overlap), failures = failures + d.used_retry::int,
        attempts_free = attempts_free + (NOT d.delivered)::int,
        result = CASE WHEN d.outcome = 'succeeded' THEN d.result END,
        finished_at = CASE WHEN d.outcome IS NOT NULL THEN clock_timestamp() END,
        history = baton.run_event(history, d.state, d.outcome, attempt, epoch, runner_id, d.cause)
    FROM decided AS d WHERE run.id = d.run_id AND run.id = ANY (%(run_ids)s::bigint[])
    -- What counts as a run is one that succeeded or failed, and a singleton's life also if it was handed over.
    RETURNING run.*, d.missed_total, extract(epoch FROM finished_at - attempt_started_at)::float8 AS seconds,
        d.outcome IN ('succeeded', 'failed') OR (kind = 'singleton' AND d.outcome = 'skipped') AS counts
), remembered AS (
    INSERT INTO baton.execution AS e
        (cluster_id, entity_type, name, last_run_at, last_success_at, run_count, last_error, missed_seen,
         average_seconds, last_seconds)
    -- Every attempt that is over shows when its run was started.
    -- missed_seen: what its run was told. What was missed since then is for the next one.
    SELECT cluster_id, CASE WHEN kind = 'singleton' THEN 'singleton' ELSE 'schedule' END, name,
        max(started_at), max(finished_at) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE counts),
        coalesce((array_agg(error ORDER BY finished_at DESC) FILTER (WHERE counts))[1], ''),
        coalesce(max(missed_total) FILTER (WHERE counts), 0), avg(seconds) FILTER (WHERE outcome = 'succeeded'),
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
SELECT EXISTS (SELECT FROM fence) AS stands, id, kind, state, outcome, reason, finished_at, seconds
FROM (SELECT) AS one LEFT JOIN changed ON true;
