-- job_catalogue/replay: queues dead letters again, with all their retries. They keep ids, history and checkpoints; the attempt never
-- falls. The batch counts them as not ended. The body may still be there.
WITH chosen AS MATERIALIZED (
    SELECT id FROM baton.job_dead j WHERE cluster_id = %(cluster_id)s
    -- include: dead_matches
    ORDER BY id LIMIT %(limit)s FOR UPDATE
), gone AS (
    DELETE FROM baton.job_dead d USING chosen WHERE d.id = chosen.id RETURNING d.*
), bodies AS (
    INSERT INTO baton.job_body (id, payload, content_type, labels, attempts, retry_initial, retry_max, timeout)
    SELECT id, payload, content_type, labels, attempts, retry_initial, retry_max, timeout FROM gone
    ON CONFLICT (id) DO NOTHING
), counted AS (
    INSERT INTO baton.job_batch_count (cluster_id, batch, failed)
    SELECT cluster_id, batch, -count(*) FROM gone WHERE batch IS NOT NULL GROUP BY 1, 2
), queued AS (
    INSERT INTO baton.job (id, due_at, expires_at, started_at, cluster_id, attempt, attempts_free, checkpoint_count,
        checkpoint_bytes, priority, state, name, queue, key, batch, error, history)
    SELECT id, clock_timestamp(), expires_at, started_at, cluster_id, attempt, attempts_free, checkpoint_count,
        checkpoint_bytes, priority, CASE WHEN key IS NOT NULL OR EXISTS (SELECT FROM baton.job_queue q
            WHERE q.cluster_id = gone.cluster_id AND q.name = gone.queue AND (q.cluster_max_running > 0 OR q.rate > 0))
            THEN 'parked' ELSE 'ready' END,
        name, queue, key, batch, error, baton.run_event(coalesce(history, '[]'), 'queued', NULL, attempt, 0, '', 'replayed')
    FROM gone RETURNING 1
)
SELECT count(*) AS count FROM queued
