-- deferreds/end: ends a pending deferred; no row if it is not pending or unknown.
-- Of several concurrent calls the first to lock the row wins. A deferred past its expiry ends as expired, whatever state
-- was requested.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS at)
UPDATE baton.deferred d SET
    state = CASE WHEN d.expires_at <= clock.at THEN 'expired' ELSE %(state)s END,
    value = CASE WHEN d.expires_at <= clock.at THEN '' ELSE %(value)s::bytea END,
    error = CASE WHEN d.expires_at <= clock.at THEN '' ELSE %(error)s END,
    finished_at = CASE WHEN d.expires_at <= clock.at THEN d.expires_at ELSE clock.at END
FROM clock
WHERE d.id = %(id)s AND d.cluster_id = %(cluster_id)s AND d.state = 'pending'
RETURNING d.id, d.name, d.run_id, d.state, d.value, d.error, d.created_at, d.finished_at, d.expires_at,
          extract(epoch FROM d.expires_at - clock.at)::float8 AS expires_in_seconds
