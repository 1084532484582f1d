-- machines/acquire: leases a machine number: the runner's own (after a lost answer), else the one whose lease ended
-- longest ago, else a new one. No number: another runner was faster, or all are leased; `taken` tells which.
-- SKIP LOCKED: a number that is being renewed or taken is not free.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now,
           floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - %(epoch_ms)s AS now_ms),
free AS MATERIALIZED (
    SELECT number, ceiling_ms FROM baton.machine
    WHERE cluster_id = %(cluster_id)s AND (runner_id = %(runner_id)s
        OR expires_at + make_interval(secs => %(grace_seconds)s) <= (SELECT now FROM clock))
    ORDER BY runner_id = %(runner_id)s DESC, expires_at LIMIT 1
    FOR UPDATE SKIP LOCKED),
reused AS (
    UPDATE baton.machine SET runner_id = %(runner_id)s,
        expires_at = clock.now + make_interval(secs => %(lease_seconds)s),
        ceiling_ms = greatest(free.ceiling_ms, clock.now_ms) + %(window_ms)s
    FROM free, clock
    WHERE machine.cluster_id = %(cluster_id)s AND machine.number = free.number
    RETURNING machine.number, free.ceiling_ms AS floor_ms, machine.ceiling_ms),
created AS (
    INSERT INTO baton.machine (cluster_id, number, runner_id, expires_at, ceiling_ms)
    SELECT %(cluster_id)s, next.number, %(runner_id)s,
           clock.now + make_interval(secs => %(lease_seconds)s), clock.now_ms + %(window_ms)s
    FROM clock, (SELECT coalesce(max(number) + 1, 0) AS number FROM baton.machine
                 WHERE cluster_id = %(cluster_id)s) AS next
    WHERE next.number < %(machines_max)s AND NOT EXISTS (SELECT FROM free)
    ON CONFLICT DO NOTHING
    RETURNING number, ceiling_ms)
SELECT clock.now_ms, taken.count AS taken, lease.number, lease.floor_ms, lease.ceiling_ms
FROM clock
CROSS JOIN (SELECT count(*) FROM baton.machine WHERE cluster_id = %(cluster_id)s) AS taken
LEFT JOIN (
    SELECT number, floor_ms, ceiling_ms FROM reused
    UNION ALL
    -- A new number: it starts now.
    SELECT number, clock.now_ms, ceiling_ms FROM created, clock) AS lease ON true;
