-- job_catalogue/stats: depth, age and limits of the queues of a cluster, or of one.
SELECT queue AS name, ready, scheduled, running, dead, extract(epoch FROM oldest_wait)::float8 AS oldest_wait_seconds,
    ended_last_minute, failed_last_minute, paused, pause_note, max_running, cluster_max_running, rate
FROM baton.queue_stats WHERE cluster = %(cluster)s AND (%(queue)s::text IS NULL OR queue = %(queue)s)
ORDER BY queue COLLATE "C"
