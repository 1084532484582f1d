-- jobs/beat: renews a worker lease, and returns the beats of other workers: the next `neighbours` in a ring ordered by id, so
-- that each worker is watched by as many others however many there are. NULL: all of them.
-- The first row is the own one; without it the lease is over. `fenced` workers have jobs that must be returned.
-- A plain read of `worker`: a beat must not wait for a fence, and need not: completions check it.
WITH own AS (
    UPDATE baton.worker_beat SET sequence = sequence + 1
    WHERE worker_id = %(worker_id)s
      AND EXISTS (SELECT FROM baton.worker WHERE id = %(worker_id)s AND fenced_at IS NULL)
    RETURNING worker_id, sequence
), later AS (
    SELECT worker_id, sequence FROM baton.worker_beat
    WHERE cluster_id = %(cluster_id)s AND worker_id > %(worker_id)s
    ORDER BY worker_id LIMIT %(neighbours)s
), earlier AS (
    SELECT worker_id, sequence FROM baton.worker_beat
    WHERE cluster_id = %(cluster_id)s AND worker_id < %(worker_id)s
    ORDER BY worker_id LIMIT CASE WHEN %(neighbours)s::integer IS NOT NULL
               THEN greatest(0, %(neighbours)s::integer - (SELECT count(*) FROM later)) END
)
SELECT true AS own, worker_id, sequence, false AS fenced FROM own
UNION ALL
SELECT false, o.worker_id, o.sequence, worker.fenced_at IS NOT NULL
FROM (SELECT * FROM later UNION ALL SELECT * FROM earlier) AS o JOIN baton.worker ON worker.id = o.worker_id;
