-- machines/renew: extends the lease and reserves more time. No row: another runner has the number.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now,
           floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - %(epoch_ms)s AS now_ms)
UPDATE baton.machine SET
    expires_at = clock.now + make_interval(secs => %(lease_seconds)s),
    ceiling_ms = greatest(machine.ceiling_ms, greatest(clock.now_ms, %(used_ms)s) + %(window_ms)s)
FROM clock
WHERE machine.cluster_id = %(cluster_id)s AND machine.number = %(number)s
  AND machine.runner_id = %(runner_id)s
RETURNING clock.now_ms, machine.number, %(used_ms)s::bigint AS floor_ms, machine.ceiling_ms;
