-- jobs/forget_worker: ends a fenced lease that has no jobs left.
WITH gone AS (
    DELETE FROM baton.worker
    WHERE id = %(worker_id)s AND fenced_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM baton.job WHERE worker_id = %(worker_id)s AND state = 'running')
    RETURNING id
)
DELETE FROM baton.worker_beat USING gone WHERE worker_id = gone.id;
