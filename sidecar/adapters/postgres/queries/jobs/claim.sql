-- jobs/claim: starts due jobs: of each queue and priority the oldest, at most %(quotas)s (critical, high, normal, low) of a
-- priority, taken from the queues by turns. Only jobs whose handler this pod has, of queues that are not paused.
-- `since`: the oldest due time to look at. Without it the claim would read, again and again, the dead entries that a long
-- transaction keeps from being vacuumed. `look` (a full claim) finds queues, and jobs that became visible late.
-- The first row always exists: whether the lease is current, the time, when the next job is due, the queues that have jobs.
-- (SELECT now …): a sub-select is evaluated once and can bound the index scan.
WITH RECURSIVE fence AS MATERIALIZED (
    -- include: fence_of_worker
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), ready (queue) AS (
    -- One index probe per queue.
    (SELECT queue FROM baton.job WHERE cluster_id = %(cluster_id)s AND state = 'ready' AND %(look)s ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT job.queue FROM baton.job
            WHERE cluster_id = %(cluster_id)s AND state = 'ready' AND job.queue > ready.queue ORDER BY job.queue LIMIT 1)
    FROM ready WHERE ready.queue IS NOT NULL
), known AS MATERIALIZED (
    SELECT queue FROM ready WHERE queue IS NOT NULL
    UNION SELECT unnest(%(queues)s::text[])
), class AS MATERIALIZED (
    SELECT known.queue, p.priority::smallint AS priority, room.room, least(p.quota, room.room) AS quota
    FROM known CROSS JOIN unnest(%(quotas)s::integer[]) WITH ORDINALITY AS p (quota, priority)
    LEFT JOIN baton.job_queue AS q ON q.cluster_id = %(cluster_id)s AND q.name = known.queue
    -- NULL: the queue has no limit per pod.
    CROSS JOIN LATERAL (SELECT CASE WHEN q.max_running > 0 THEN greatest(0, q.max_running
        - coalesce(%(running)s::jsonb ->> known.queue, '0')::integer) END) AS room (room)
    WHERE q.paused IS NOT TRUE
), due AS MATERIALIZED (
    SELECT class.queue, class.priority, class.room, j.id, j.place FROM class CROSS JOIN LATERAL (
        SELECT locked.id, row_number() OVER () AS place FROM (
            SELECT id FROM baton.job
            WHERE cluster_id = %(cluster_id)s AND job.queue = class.queue AND job.priority = class.priority AND state = 'ready'
              AND due_at <= (SELECT now FROM clock) AND due_at >= %(since)s
              AND name = ANY (%(names)s::text[])
              AND (expires_at IS NULL OR attempt > 0 OR expires_at > (SELECT now FROM clock))
              AND EXISTS (SELECT FROM fence)
            ORDER BY due_at, id LIMIT class.quota FOR NO KEY UPDATE SKIP LOCKED) AS locked) AS j
), picked AS MATERIALIZED (
    SELECT id FROM (
        SELECT id, priority, room, row_number() OVER (PARTITION BY priority ORDER BY place, queue) AS turn,
            row_number() OVER (PARTITION BY queue ORDER BY priority, place) AS place_in_queue
        FROM due) AS d
    WHERE turn <= (%(quotas)s::integer[])[priority] AND (room IS NULL OR place_in_queue <= room)
), claimed AS (
    UPDATE baton.job SET
        state = 'running', worker_id = %(worker_id)s, attempt = attempt + 1, started_at = clock_timestamp(),
        progress = NULL, progress_message = NULL
    WHERE job.id = ANY (ARRAY (SELECT id FROM picked))
    RETURNING job.*
), head AS (
    SELECT EXISTS (SELECT FROM fence) AS is_current, (SELECT now FROM clock) AS now,
        CASE WHEN %(look)s THEN (
            SELECT min(n.due_at) FROM class CROSS JOIN LATERAL (
                SELECT due_at FROM baton.job
                WHERE cluster_id = %(cluster_id)s AND job.queue = class.queue AND job.priority = class.priority
                  AND state = 'ready' AND due_at > (SELECT now FROM clock)
                ORDER BY due_at LIMIT 1) AS n) END AS next_due_at,
        ARRAY (SELECT queue FROM ready WHERE queue IS NOT NULL) AS queues
)
SELECT head.is_current, head.now, head.next_due_at, head.queues,
    c.id, c.name, c.queue, c.priority, c.key, c.batch, c.attempt, c.attempts_free, c.failures, c.rescues, c.due_at,
    baton.id_time(c.id) AS submitted_at, extract(epoch FROM c.started_at - c.due_at)::float8 AS late_seconds,
    extract(epoch FROM c.started_at - baton.id_time(c.id))::float8 AS queued_seconds,
    body.payload, body.content_type, body.labels, coalesce(body.attempts, q.attempts) AS attempts,
    coalesce(body.retry_initial, q.retry_initial) AS retry_initial, coalesce(body.retry_max, q.retry_max) AS retry_max,
    coalesce(body.timeout, q.timeout) AS timeout,
    c.key IS NOT NULL AND EXISTS (
        SELECT FROM baton.state
        WHERE state.cluster_id = c.cluster_id AND state.key = 'job-state:' || c.name || '/' || c.key) AS has_state
FROM head FULL JOIN claimed AS c ON false
LEFT JOIN baton.job_queue AS q ON q.cluster_id = c.cluster_id AND q.name = c.queue
-- LIMIT 1: by key for each row, in the one partition that it is in.
LEFT JOIN LATERAL (SELECT * FROM baton.job_body WHERE job_body.id = c.id LIMIT 1) AS body ON true
ORDER BY c.priority NULLS FIRST, c.due_at, c.id;
