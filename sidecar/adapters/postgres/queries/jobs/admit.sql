-- jobs/admit: lets parked jobs start: of each key the oldest that is due, if fewer than `per_key` of its jobs are admitted;
-- and of a queue with limits at most `rooms`, by turns 4:3:2:1 between priorities. Only the leader of the first group calls
-- it (fenced): nothing else can admit a job, so there is no counter to race for.
WITH RECURSIVE fence AS MATERIALIZED (
    -- include: fence
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), limited AS MATERIALIZED (
    SELECT * FROM unnest(%(queues)s::text[], %(rooms)s::integer[]) AS l (queue, room)
), keyed (name, key) AS (
    -- One index probe per key: a key with a million jobs costs no more than one with two.
    (SELECT name, key FROM baton.job WHERE cluster_id = %(cluster_id)s AND key IS NOT NULL ORDER BY name, key LIMIT 1)
    UNION ALL
    SELECT n.name, n.key FROM keyed CROSS JOIN LATERAL (
        SELECT job.name, job.key FROM baton.job
        WHERE cluster_id = %(cluster_id)s AND job.key IS NOT NULL AND (job.name, job.key) > (keyed.name, keyed.key)
        ORDER BY job.name, job.key LIMIT 1) AS n
), heads AS MATERIALIZED (
    -- The oldest due jobs of each key: as many as may be admitted beside those that are.
    SELECT h.* FROM keyed CROSS JOIN LATERAL (
        SELECT id, queue, priority, due_at FROM baton.job
        WHERE cluster_id = %(cluster_id)s AND job.name = keyed.name AND job.key = keyed.key AND state = 'parked'
          AND due_at <= (SELECT now FROM clock)
        ORDER BY id
        LIMIT greatest(0, coalesce((
            SELECT min(per_key) FROM baton.job_queue AS q
            WHERE q.cluster_id = %(cluster_id)s AND per_key > 0 AND q.name = (
                SELECT queue FROM baton.job AS first
                WHERE first.cluster_id = %(cluster_id)s AND first.name = keyed.name AND first.key = keyed.key
                ORDER BY first.id LIMIT 1)), 1)
            - (SELECT count(*) FROM baton.job AS busy
               WHERE busy.cluster_id = %(cluster_id)s AND busy.name = keyed.name AND busy.key = keyed.key
                 AND busy.state <> 'parked'))) AS h
), unkeyed AS MATERIALIZED (
    SELECT u.* FROM limited CROSS JOIN generate_series(1, 4) AS p (priority) CROSS JOIN LATERAL (
        SELECT id, queue, job.priority, due_at FROM baton.job
        WHERE cluster_id = %(cluster_id)s AND job.queue = limited.queue AND job.priority = p.priority AND state = 'parked'
          AND due_at <= (SELECT now FROM clock) AND key IS NULL
        ORDER BY due_at LIMIT limited.room) AS u
), ranked AS (
    SELECT id, c.queue, l.room, row_number() OVER (PARTITION BY c.queue ORDER BY turn, priority, due_at) AS place FROM (
        -- The n-th job of a priority comes in turn n / weight.
        SELECT *, row_number() OVER (PARTITION BY queue, priority ORDER BY due_at, id)::float8 / (5 - priority) AS turn
        FROM (SELECT * FROM heads UNION ALL SELECT * FROM unkeyed) AS parked) AS c
    LEFT JOIN limited AS l ON l.queue = c.queue
), chosen AS MATERIALIZED (
    SELECT id FROM baton.job
    WHERE id = ANY (ARRAY (SELECT id FROM ranked WHERE room IS NULL OR place <= room)) AND state = 'parked'
      AND EXISTS (SELECT FROM fence)
    FOR UPDATE SKIP LOCKED
), admitted AS (
    UPDATE baton.job SET state = 'ready', admitted = true WHERE id = ANY (ARRAY (SELECT id FROM chosen)) RETURNING queue
)
SELECT EXISTS (SELECT FROM fence) AS is_current, (SELECT now FROM clock) AS now, counts.queue, counts.count,
    (SELECT min(due_at) FROM baton.job
     WHERE cluster_id = %(cluster_id)s AND state = 'parked' AND due_at > (SELECT now FROM clock)) AS next_due_at
FROM (SELECT) AS one LEFT JOIN (SELECT queue, count(*) FROM admitted GROUP BY queue) AS counts ON true;
