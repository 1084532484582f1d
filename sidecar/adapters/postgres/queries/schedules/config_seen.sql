-- schedules/config_seen: records that a runner has this file; the time of the first load orders files of one revision.
-- `anew`: a runner's file was changed to this one, so it is the newest even if it existed before.
INSERT INTO baton.config_load AS l (cluster_id, digest, revision, source)
VALUES (%(cluster_id)s, %(digest)s, %(revision)s, %(source)s)
ON CONFLICT (cluster_id, digest, revision) DO UPDATE SET seen_at = clock_timestamp(),
    first_loaded_at = CASE WHEN %(anew)s THEN clock_timestamp() ELSE l.first_loaded_at END
RETURNING l.revision, l.first_loaded_at, l.applied;
