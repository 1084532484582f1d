-- The jobs of all three tables, in the columns of shared/dead_jobs. Conditions on it reach the indexes of each table.
SELECT id, cluster_id, name, queue, priority, key, batch,
    CASE WHEN state = 'running' THEN 'running' WHEN attempt = 0 THEN 'queued' ELSE 'waiting' END AS state,
    NULL AS outcome, NULL AS reason, attempt, failures, rescues, due_at, expires_at, started_at, NULL::timestamptz AS finished_at,
    worker_id, NULL AS runner_id, error, progress, progress_message, cancel_note IS NOT NULL AND state = 'running' AS cancelling,
    history, NULL::bytea AS result, xmin::text AS version, state = 'parked' AS parked, NULL::bytea AS payload,
    NULL AS content_type, NULL::jsonb AS labels, false AS dead
FROM baton.job
UNION ALL
SELECT id, cluster_id, name, queue, priority, key, batch, 'ended', outcome, reason, attempt, failures, rescues, due_at,
    expires_at, started_at, finished_at, NULL, runner_id, error, NULL, NULL, false, history, result, NULL, false, NULL, NULL,
    NULL, false
FROM baton.job_ended
UNION ALL
-- include: dead_jobs
