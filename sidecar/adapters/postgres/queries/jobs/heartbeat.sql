-- jobs/heartbeat: a sign of life of the live attempt. Progress and message that are not given stay as they were.
WITH fence AS MATERIALIZED (
    -- include: fence_of_worker
)
UPDATE baton.job SET progress = coalesce(%(progress)s, progress),
    progress_message = coalesce(%(message)s, progress_message)
WHERE id = %(run_id)s AND cluster_id = %(cluster_id)s AND attempt = %(attempt)s AND worker_id = %(worker_id)s
  AND state = 'running' AND EXISTS (SELECT FROM fence)
RETURNING name;
