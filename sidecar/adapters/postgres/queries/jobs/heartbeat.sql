-- jobs/heartbeat: a sign of life of the live attempt. Progress and message that are not given stay as they were.
WITH ref AS NOT MATERIALIZED (
    SELECT %(run_id)s::bigint AS run_id, %(attempt)s::bigint AS attempt
), fence AS MATERIALIZED (
    -- include: fence_of_worker
)
UPDATE baton.job SET progress = coalesce(%(progress)s, progress),
    progress_message = coalesce(%(message)s, progress_message)
FROM ref WHERE
    -- include: live_job
  AND job.cluster_id = %(cluster_id)s AND EXISTS (SELECT FROM fence)
RETURNING name;
