-- state/extend: owned state does not expire while it is led: what has a heartbeat within `led_seconds` lives on
-- from now. Not from the heartbeat, which may be seldom, or still be that of the leader before.
-- Only what has aged by some seconds: the sweepers of many pods do not write the same again and again. And only what
-- is still there: a leader may have begun without what has expired, and readers were told that it is gone.
-- SKIP LOCKED: whoever writes an entry just now gives it its time; waiting for it, in another order than a completion
-- of several runs, could deadlock.
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
