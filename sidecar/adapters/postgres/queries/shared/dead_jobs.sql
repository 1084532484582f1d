-- The dead letters, in the columns that shared/job_columns shows.
SELECT id, cluster_id, name, queue, priority, key, batch, 'ended' AS state, 'failed' AS outcome, NULL AS reason, attempt, failures,
    rescues, due_at, expires_at, started_at, finished_at, NULL::bigint AS worker_id, runner_id, error, NULL::float8 AS progress,
    NULL AS progress_message, false AS cancelling, history, NULL::bytea AS result, NULL AS version, false AS parked, payload,
    content_type, labels, true AS dead
FROM baton.job_dead
