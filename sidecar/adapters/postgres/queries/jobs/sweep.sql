-- jobs/sweep: releases unique keys whose time is over or whose job has ended while their row was locked, forgets answered
-- requests of yesterday, and adds up the counts of batches.
WITH expired AS (
    DELETE FROM baton.job_unique WHERE expires_at < (SELECT clock_timestamp())
), left_over AS (
    DELETE FROM baton.job_unique AS u
    WHERE cluster_id = %(cluster_id)s AND expires_at IS NULL AND job_id < baton.id_at(clock_timestamp() - interval '1 minute')
      AND NOT EXISTS (SELECT FROM baton.job WHERE job.id = u.job_id)
), past AS (
    UPDATE baton.job_unique AS u SET live = false
    WHERE cluster_id = %(cluster_id)s AND live AND expires_at >= clock_timestamp()
      AND NOT EXISTS (SELECT FROM baton.job WHERE job.id = u.job_id)
), requests AS (
    DELETE FROM baton.job_request WHERE requested_at < (SELECT clock_timestamp()) - interval '1 day'
), counts AS (
    DELETE FROM baton.job_batch_count WHERE cluster_id = %(cluster_id)s RETURNING *
)
INSERT INTO baton.job_batch_count (cluster_id, batch, total, succeeded, failed, skipped, counted_at)
SELECT cluster_id, batch, sum(total), sum(succeeded), sum(failed), sum(skipped), max(counted_at) FROM counts
-- A batch without a live job that nobody closed is forgotten with its jobs.
GROUP BY 1, 2
HAVING max(counted_at) > clock_timestamp() - make_interval(secs => %(keep_seconds)s) OR sum(total) > sum(succeeded + failed + skipped);
