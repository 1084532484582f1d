-- jobs/complete: writes the results of attempts. Accepted only for the live attempt of this worker lease: a job that is not
-- accepted is not returned. A job that ends leaves `job`, one that waits stays.
-- SKIP LOCKED: a row that another session has locked holds up no other job; it is not returned either, and written later.
-- Rows are found by id alone before anything is compared: an index on the worker would read all that it has completed.
WITH fence AS (
    -- include: fence_of_worker
), ref AS (
    SELECT * FROM unnest(
        %(run_ids)s::int8[], %(attempts)s::int[], %(outcomes)s::text[], %(reasons)s::text[], %(waits)s::float8[],
        %(dues)s::timestamptz[], %(used_retries)s::bool[], %(delivereds)s::bool[], %(results)s::bytea[],
        %(errors)s::text[], %(error_codes)s::text[], %(causes)s::text[]
    ) AS r (run_id, attempt, outcome, reason, wait, due, used, delivered, result, error, code, cause)
), live AS MATERIALIZED (
    SELECT id, attempt, worker_id, state, cancel_note FROM baton.job
    WHERE id = ANY (%(run_ids)s::int8[]) AND EXISTS (SELECT FROM fence)
    ORDER BY id FOR UPDATE SKIP LOCKED
), decided AS MATERIALIZED (
    -- A job that would wait ends instead if it was cancelled.
    SELECT ref.run_id, CASE WHEN stopped THEN 'skipped' ELSE outcome END AS outcome,
        CASE WHEN stopped THEN 'operator' ELSE reason END AS reason, nullif(error, '') AS error, nullif(code, '') AS code,
        CASE WHEN outcome = 'succeeded' AND result <> '' THEN result END AS result, used::integer AS used,
        CASE WHEN stopped THEN cancel_note ELSE cause END AS cause, %(runner_id)s::text AS runner_id, wait, due, delivered
    FROM live AS job JOIN ref ON
        -- include: live_job
    CROSS JOIN LATERAL (SELECT outcome IS NULL AND cancel_note IS NOT NULL AS stopped) AS s
), waiting AS (
    -- A keyed job stays admitted: it keeps its place before the later jobs of its key. Another one waits for the limits of its
    -- queue again.
    UPDATE baton.job SET
        state = CASE WHEN admitted AND key IS NULL THEN 'parked' ELSE 'ready' END, admitted = admitted AND key IS NOT NULL,
        worker_id = NULL, error = d.error, failures = failures + d.used,
        attempts_free = attempts_free + (NOT d.delivered)::integer,
        due_at = coalesce(d.due, clock_timestamp() + make_interval(secs => d.wait)),
        history = baton.run_event(coalesce(history, '[]'), 'waiting', NULL, attempt, %(worker_id)s, %(runner_id)s, d.cause)
    FROM decided AS d
    WHERE job.id = d.run_id AND job.id = ANY (ARRAY (SELECT run_id FROM decided WHERE outcome IS NULL))
    RETURNING job.id
),
-- include: end_jobs
SELECT EXISTS (SELECT FROM fence) AS is_current, done.id, done.state, done.outcome, done.reason, done.finished_at, done.seconds
FROM (SELECT) AS one LEFT JOIN (
    SELECT id, 'ended' AS state, outcome, reason, finished_at, extract(epoch FROM finished_at - started_at)::float8 AS seconds
    FROM ended
    UNION ALL
    SELECT id, 'waiting', NULL, NULL, NULL, NULL FROM waiting) AS done ON true;
