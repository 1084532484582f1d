-- state/extend: owned state does not expire while its owner has a leader: entries with a heartbeat within `led_seconds`
-- expire a full ttl from now. Not from the heartbeat, which may be rare, or still be the previous leader's.
-- Only entries that have aged by some seconds, so that sweepers of many pods do not write the same again and again. And
-- only entries that have not expired: a leader may have started without one, and readers saw that it is gone.
-- SKIP LOCKED: a writer sets the expiry itself; waiting for it, in another order than a completion of several runs, could
-- deadlock.
WITH ageing AS MATERIALIZED (
    SELECT s.key, s.state_version
    FROM baton.execution e
    JOIN baton.state s ON s.cluster_id = e.cluster_id AND s.key = e.entity_type || '-state:' || e.name
    WHERE e.cluster_id = %(cluster_id)s AND s.state_version > 0
      AND e.heartbeat_at > clock_timestamp() - make_interval(secs => %(led_seconds)s)
      AND s.value IS NOT NULL AND s.expires_at > clock_timestamp()
      AND s.expires_at < clock_timestamp() + s.ttl - least(s.ttl / 6, interval '15 s')
    FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE baton.state s
SET expires_at = clock_timestamp() + s.ttl
FROM ageing a
WHERE s.cluster_id = %(cluster_id)s AND s.key = a.key AND s.state_version = a.state_version
