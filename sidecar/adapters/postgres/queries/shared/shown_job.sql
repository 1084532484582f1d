-- What shared/job_columns needs: the jobs of `page` with body, worker and queue.
FROM page j
LEFT JOIN baton.job_body b ON b.id = j.id
LEFT JOIN baton.worker w ON w.id = j.worker_id
LEFT JOIN baton.job_queue q ON q.cluster_id = j.cluster_id AND q.name = j.queue
ORDER BY j.id DESC
