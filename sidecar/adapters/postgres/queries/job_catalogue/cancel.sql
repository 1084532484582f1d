-- job_catalogue/cancel: ends jobs that are not running, and asks running ones to stop. Locked first, in the order of their ids: the
-- state that decides is the current one, and nothing deadlocks.
WITH chosen AS MATERIALIZED (
    SELECT id, state, batch FROM baton.job j
    WHERE cluster_id = %(cluster_id)s
      AND (%(state)s::text IS NULL OR %(state)s = CASE WHEN state = 'running' THEN 'running'
            WHEN attempt = 0 THEN 'queued' ELSE 'waiting' END)
      -- include: job_matches
      AND (%(labels)s::jsonb IS NULL OR EXISTS (
            SELECT FROM baton.job_body b WHERE b.id = j.id AND b.labels @> %(labels)s::jsonb))
    ORDER BY id LIMIT %(limit)s FOR UPDATE OF j
), ended AS MATERIALIZED (
    SELECT s.id FROM baton.skip_jobs(%(cluster_id)s::integer, ARRAY (SELECT id FROM chosen), 'operator', %(cause)s) AS s (id)
), requested AS (
    UPDATE baton.job SET cancel_note = coalesce(cancel_note, %(cause)s)
    WHERE id IN (SELECT id FROM chosen WHERE state = 'running') RETURNING 1
)
SELECT (SELECT count(*) FROM ended) AS ended, (SELECT count(*) FROM requested) AS requested,
    ARRAY (SELECT DISTINCT batch FROM chosen JOIN ended USING (id) WHERE batch IS NOT NULL) AS batches
