-- job_catalogue/pause_queue: no job of the queue is started.
INSERT INTO baton.job_queue (cluster_id, name, paused, pause_note) VALUES (%(cluster_id)s, %(queue)s, true, %(note)s)
ON CONFLICT (cluster_id, name) DO UPDATE SET paused = true, pause_note = excluded.pause_note
