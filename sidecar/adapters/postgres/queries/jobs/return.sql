-- jobs/return: gives back jobs that a fenced worker left running: due at once, with no retry used. Cancelled ones end; a job
-- that was rescued `rescues_max` times is a dead letter: it may be what kills the pods. At most `limit` at a time.
-- SKIP LOCKED: two rescuers share the work; a row that another session has locked is returned next time.
WITH fence AS (
    SELECT id, runner_id FROM baton.worker WHERE id = %(worker_id)s AND fenced_at IS NOT NULL FOR SHARE
), held AS MATERIALIZED (
    SELECT id, rescues, cancel_note FROM baton.job
    WHERE worker_id = %(worker_id)s AND state = 'running' AND EXISTS (SELECT FROM fence)
    ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), decided AS MATERIALIZED (
    SELECT id AS run_id, CASE WHEN cancel_note IS NOT NULL THEN 'skipped'
                    WHEN %(rescued)s AND rescues + 1 >= %(rescues_max)s THEN 'failed' END AS outcome,
        CASE WHEN cancel_note IS NOT NULL THEN 'operator' END AS reason,
        CASE WHEN cancel_note IS NULL AND %(rescued)s AND rescues + 1 >= %(rescues_max)s
             THEN 'given up after ' || %(rescues_max)s || ' rescues: its pods died or lost their lease' END AS error,
        'RESCUED' AS code, NULL::bytea AS result, 0 AS used,
        coalesce(cancel_note, %(cause)s) AS cause, (SELECT runner_id FROM fence) AS runner_id
    FROM held
), waiting AS (
    UPDATE baton.job SET
        state = 'ready', worker_id = NULL, due_at = clock_timestamp(), rescues = rescues + %(rescued)s::boolean::integer,
        attempts_free = attempts_free + 1,
        history = baton.run_event(coalesce(history, '[]'), 'waiting', NULL, attempt, %(worker_id)s, d.runner_id, d.cause)
    FROM decided AS d WHERE job.id = d.run_id AND d.outcome IS NULL AND job.id = ANY (ARRAY (SELECT run_id FROM decided))
    RETURNING job.id
),
-- include: end_jobs
SELECT (SELECT count(*) FROM held) AS found, (SELECT count(*) FROM waiting) AS returned,
    (SELECT count(buried) FROM ended) AS dead;
