-- jobs/checkpoint: stores a step's result for the live attempt. The job's row is locked: it counts its checkpoints, and a
-- completion comes before or after. If the step is stored already, its value is returned and nothing changes.
WITH ref AS NOT MATERIALIZED (
    SELECT %(run_id)s::bigint AS run_id, %(attempt)s::bigint AS attempt
), fence AS MATERIALIZED (
    -- include: fence_of_worker
), live AS MATERIALIZED (
    SELECT id, checkpoint_count, checkpoint_bytes FROM baton.job JOIN ref ON
        -- include: live_job
    WHERE job.cluster_id = %(cluster_id)s AND EXISTS (SELECT FROM fence)
    FOR NO KEY UPDATE OF job
), found AS MATERIALIZED (
    SELECT value FROM baton.job_checkpoint WHERE job_id = (SELECT id FROM live) AND step = %(step)s
), fitting AS MATERIALIZED (
    SELECT live.* FROM live
    WHERE NOT EXISTS (SELECT FROM found)
      AND checkpoint_count < %(count_max)s AND checkpoint_bytes + octet_length(%(value)s::bytea) <= %(bytes_max)s
), stored AS (
    INSERT INTO baton.job_checkpoint (job_id, seq, step, value)
    SELECT id, checkpoint_count + 1, %(step)s, %(value)s FROM fitting
    RETURNING job_id
), counted AS (
    UPDATE baton.job SET checkpoint_count = job.checkpoint_count + 1,
        checkpoint_bytes = job.checkpoint_bytes + octet_length(%(value)s::bytea)
    FROM stored WHERE job.id = stored.job_id
)
SELECT EXISTS (SELECT FROM live) AS is_current, EXISTS (SELECT FROM stored) AS stored,
    (SELECT value FROM found) AS existing;
