-- jobs/cancellations: jobs that this worker runs and that somebody cancelled.
SELECT id, attempt, cancel_note FROM baton.job
WHERE worker_id = %(worker_id)s AND cancel_note IS NOT NULL AND state = 'running';
