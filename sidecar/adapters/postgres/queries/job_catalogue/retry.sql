-- job_catalogue/retry: the next attempt of a job that waits is due now.
UPDATE baton.job SET due_at = least(due_at, clock_timestamp())
WHERE id = %(job_id)s AND cluster_id = %(cluster_id)s AND state <> 'running' AND attempt > 0
RETURNING id
