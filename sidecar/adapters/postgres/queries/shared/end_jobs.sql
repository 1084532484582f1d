-- shared/end_jobs: moves the jobs in `decided` (run_id, outcome, reason, error, code, result, used, cause, runner_id) that have
-- an outcome out of `job`: to `job_dead` if they failed, else to `job_ended`. Releases unique keys and counts batches. `gone`
-- returns them. The rows of `job` are locked by the statement.
-- = ANY (ARRAY …): by primary key, whatever the planner believes.
gone AS (
    DELETE FROM baton.job USING decided AS d
    WHERE job.id = d.run_id AND job.id = ANY (ARRAY (SELECT run_id FROM decided WHERE outcome IS NOT NULL))
    RETURNING job.*, d.outcome, d.reason, d.error AS last_error, d.code, d.result, d.used, d.cause, d.runner_id,
        clock_timestamp() AS finished_at
), archived AS (
    INSERT INTO baton.job_ended (id, finished_at, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues,
        priority, outcome, reason, name, queue, key, batch, runner_id, error, result, history)
    SELECT id, finished_at, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues, priority, outcome, reason,
        name, queue, key, batch, runner_id, last_error, result,
        CASE WHEN outcome = 'succeeded' THEN history
             ELSE baton.run_event(coalesce(history, '[]'), 'ended', outcome, attempt, worker_id, runner_id, cause) END
    FROM gone WHERE outcome <> 'failed'
), dead AS (
    INSERT INTO baton.job_dead (id, finished_at, due_at, expires_at, started_at, cluster_id, attempt, attempts_free, failures,
        checkpoint_count, checkpoint_bytes, rescues, priority, name, queue, key, batch, runner_id, error, error_code, history,
        payload, content_type, labels, attempts, retry_initial, retry_max, timeout)
    SELECT g.id, finished_at, due_at, expires_at, started_at, cluster_id, attempt, attempts_free, failures + used,
        checkpoint_count, checkpoint_bytes, rescues, priority, name, queue, key, batch, runner_id, last_error, code,
        baton.run_event(coalesce(history, '[]'), 'ended', outcome, attempt, worker_id, runner_id, cause),
        coalesce(body.payload, ''), coalesce(body.content_type, ''), body.labels, body.attempts, body.retry_initial,
        body.retry_max, body.timeout
    FROM gone AS g LEFT JOIN LATERAL (SELECT * FROM baton.job_body WHERE job_body.id = g.id LIMIT 1) AS body ON true
    WHERE outcome = 'failed'
), counted AS (
    INSERT INTO baton.job_batch_count (cluster_id, batch, succeeded, failed, skipped)
    SELECT cluster_id, batch, count(*) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE outcome = 'failed'),
        count(*) FILTER (WHERE outcome = 'skipped')
    FROM gone WHERE batch IS NOT NULL GROUP BY 1, 2
), forgotten AS (
    -- A dead letter keeps its steps: a replay continues where it failed.
    DELETE FROM baton.job_checkpoint
    WHERE job_id = ANY (ARRAY (SELECT id FROM gone WHERE checkpoint_count > 0 AND outcome <> 'failed'))
), held_keys AS (
    -- SKIP LOCKED: a submission in a transaction that stays open holds nothing up. jobs/sweep releases what is left.
    SELECT u.cluster_id, u.name, u.unique_key FROM gone
    JOIN baton.job_unique AS u ON u.cluster_id = gone.cluster_id AND u.name = gone.name AND u.unique_key = gone.unique_key
    WHERE gone.unique_key IS NOT NULL AND u.job_id = gone.id FOR UPDATE OF u SKIP LOCKED
), released AS (
    DELETE FROM baton.job_unique AS u USING held_keys AS h
    WHERE u.cluster_id = h.cluster_id AND u.name = h.name AND u.unique_key = h.unique_key AND u.expires_at IS NULL
), past AS (
    UPDATE baton.job_unique AS u SET live = false FROM held_keys AS h
    WHERE u.cluster_id = h.cluster_id AND u.name = h.name AND u.unique_key = h.unique_key AND u.expires_at IS NOT NULL
)
