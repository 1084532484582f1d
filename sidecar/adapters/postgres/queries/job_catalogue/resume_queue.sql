-- job_catalogue/resume_queue: jobs of the queue are started again. A queue that was not paused stays as it is; the message makes the
-- answer wait for whoever resumed it.
WITH resumed AS (
    UPDATE baton.job_queue SET paused = false, pause_note = ''
    WHERE cluster_id = %(cluster_id)s AND name = %(queue)s AND paused
)
SELECT baton.await_replication_at_commit()
