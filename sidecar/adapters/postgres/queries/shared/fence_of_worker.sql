-- shared/fence_of_worker: one row if the worker lease %(worker_id)s was not fenced.
-- FOR SHARE: a rescuer that is about to fence it commits first, and this finds no row; or it waits for this statement.
SELECT id FROM baton.worker WHERE id = %(worker_id)s AND fenced_at IS NULL FOR SHARE
