-- job_catalogue/reschedule: changes when a job that is not running is due. One that the leader had admitted waits for it again:
-- otherwise it would take a slot of its key or queue until then.
UPDATE baton.job SET due_at = greatest(clock_timestamp(), %(due_at)s::timestamptz), admitted = false,
    state = CASE WHEN admitted THEN 'parked' ELSE state END
WHERE id = %(job_id)s AND cluster_id = %(cluster_id)s AND state <> 'running'
RETURNING id
