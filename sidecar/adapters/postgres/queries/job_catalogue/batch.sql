-- job_catalogue/batch: the counts of a batch; no row if there is none.
SELECT coalesce(c.total, 0) AS total, coalesce(c.succeeded, 0) AS succeeded, coalesce(c.failed, 0) AS failed,
    coalesce(c.skipped, 0) AS skipped, coalesce(b.closed, false) AS closed, b.completed_at IS NOT NULL AS complete,
    coalesce(b.completion_job_id, 0) AS completion_job_id
FROM (SELECT sum(total)::bigint AS total, sum(succeeded)::bigint AS succeeded, sum(failed)::bigint AS failed,
             sum(skipped)::bigint AS skipped
      FROM baton.job_batch_count WHERE cluster_id = %(cluster_id)s AND batch = %(batch)s) AS c
LEFT JOIN baton.job_batch b ON b.cluster_id = %(cluster_id)s AND b.batch = %(batch)s
WHERE c.total IS NOT NULL OR b.batch IS NOT NULL
