-- shared/end_jobs: moves the jobs in `decided` (run_id, outcome, reason, error, code, result, used, cause, runner_id) that have
-- an outcome out of `job`: to `job_dead` if they failed, else to `job_ended`. Releases unique keys and counts batches. The
-- statement must read `ended`, which has them. The rows of `job` are locked by the statement.
-- = ANY (ARRAY …): by primary key, whatever the planner believes.
gone AS (
    DELETE FROM baton.job USING decided AS d
    WHERE job.id = d.run_id AND job.id = ANY (ARRAY (SELECT run_id FROM decided WHERE outcome IS NOT NULL))
    RETURNING job.*, job AS j, d.outcome, d.reason, d.error AS last_error, d.code, d.result, d.used, d.cause, d.runner_id,
        clock_timestamp() AS finished_at
), archived AS (
    INSERT INTO baton.job_ended (id, finished_at, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues,
        priority, outcome, reason, name, queue, key, batch, runner_id, error, result, history)
    SELECT id, finished_at, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues, priority, outcome, reason,
        name, queue, key, batch, runner_id, last_error, result,
        CASE WHEN outcome = 'succeeded' THEN history
             ELSE baton.run_event(coalesce(history, '[]'), 'ended', outcome, attempt, worker_id, runner_id, cause) END
    FROM gone WHERE outcome <> 'failed'
), counted AS (
    INSERT INTO baton.job_batch_count (cluster_id, batch, succeeded, failed, skipped)
    SELECT cluster_id, batch, count(*) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE outcome = 'failed'),
        count(*) FILTER (WHERE outcome = 'skipped')
    FROM gone WHERE batch IS NOT NULL GROUP BY 1, 2
), forgotten AS (
    DELETE FROM baton.job_checkpoint
    WHERE job_id = ANY (ARRAY (SELECT id FROM gone WHERE checkpoint_count > 0 AND outcome <> 'failed'))
), ended AS MATERIALIZED (
    SELECT id, outcome, reason, finished_at, started_at,
        CASE WHEN outcome = 'failed' THEN baton.bury_job(j, finished_at, last_error, code, used, cause, runner_id) END AS buried,
        CASE WHEN unique_key IS NOT NULL THEN baton.release_unique_key(j) END AS released
    FROM gone
)
