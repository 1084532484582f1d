-- schedules/config_newest: the applied file, and when a runner last had it.
SELECT digest, revision, first_loaded_at, seen_at
FROM baton.config_load
WHERE cluster_id = %(cluster_id)s AND source = %(source)s AND applied AND NOT (digest = %(digest)s AND revision = %(revision)s);
