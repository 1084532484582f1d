-- request_resign: ask the leader of this epoch to hand the group over; its next ping returns the request.
INSERT INTO baton.resign_request AS request (group_id, epoch) VALUES (%(group_id)s, %(epoch)s)
ON CONFLICT (group_id) DO UPDATE SET epoch = excluded.epoch, requested_at = clock_timestamp()
WHERE request.epoch < excluded.epoch;
