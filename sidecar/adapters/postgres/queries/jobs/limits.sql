-- jobs/limits: the queues with a limit in the cluster, and how many of their jobs are admitted now. A queue that got its
-- limit while jobs were ready: jobs/park.
SELECT q.name AS queue, q.cluster_max_running, q.rate,
    (SELECT count(*) FROM baton.job WHERE cluster_id = %(cluster_id)s AND job.queue = q.name AND admitted) AS admitted
FROM baton.job_queue AS q
WHERE q.cluster_id = %(cluster_id)s AND (q.cluster_max_running > 0 OR q.rate > 0);
