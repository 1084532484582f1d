-- job_catalogue/configure_queues: stores the limits of the configured queues; a queue that is not configured any more has none. Only
-- rows that differ are written. Jobs that no limit holds back any more are admitted by the leader.
WITH given AS (
    SELECT * FROM unnest(%(names)s::text[], %(max_running)s::integer[], %(cluster_max_running)s::integer[], %(per_key)s::integer[],
        %(rates)s::float8[], %(attempts)s::integer[], %(retry_initials)s::float8[], %(retry_maxes)s::float8[], %(timeouts)s::float8[])
        AS g (name, max_running, cluster_max_running, per_key, rate, attempts, retry_initial, retry_max, timeout)
), unlimited AS (
    UPDATE baton.job_queue q SET max_running = 0, cluster_max_running = 0, per_key = 1, rate = 0, attempts = NULL,
        retry_initial = NULL, retry_max = NULL, timeout = NULL
    WHERE cluster_id = %(cluster_id)s AND name NOT IN (SELECT name FROM given)
      AND (max_running, cluster_max_running, per_key, rate, attempts, retry_initial, retry_max, timeout)
          IS DISTINCT FROM (0, 0, 1, 0, NULL, NULL, NULL, NULL)
)
INSERT INTO baton.job_queue AS q (cluster_id, name, max_running, cluster_max_running, per_key, rate, attempts, retry_initial,
    retry_max, timeout)
SELECT %(cluster_id)s, given.* FROM given
ON CONFLICT (cluster_id, name) DO UPDATE SET max_running = excluded.max_running,
    cluster_max_running = excluded.cluster_max_running, per_key = excluded.per_key, rate = excluded.rate,
    attempts = excluded.attempts, retry_initial = excluded.retry_initial, retry_max = excluded.retry_max,
    timeout = excluded.timeout
WHERE (q.max_running, q.cluster_max_running, q.per_key, q.rate, q.attempts, q.retry_initial, q.retry_max, q.timeout)
    IS DISTINCT FROM (excluded.max_running, excluded.cluster_max_running, excluded.per_key, excluded.rate, excluded.attempts,
        excluded.retry_initial, excluded.retry_max, excluded.timeout)
RETURNING name
