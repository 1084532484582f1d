-- jobs/fence: fences a worker whose beat is still the one that was seen. From now on it can claim and complete nothing.
UPDATE baton.worker SET fenced_at = clock_timestamp(), fenced_by = %(runner_id)s
WHERE id = %(worker_id)s AND cluster_id = %(cluster_id)s AND fenced_at IS NULL
  AND (%(sequence)s::bigint IS NULL
       OR %(sequence)s = (SELECT sequence FROM baton.worker_beat WHERE worker_beat.worker_id = worker.id))
RETURNING id;
