-- state/extend: owned state does not expire while it is led: what has a heartbeat within `led_seconds` lives on
-- from now. Not from the heartbeat, which may be seldom, or still be that of the leader before.
-- Only what has aged by some seconds: the sweepers of many pods do not write the same again and again. And only what
-- is still there: a leader may have begun without what has expired, and readers were told that it is gone.
UPDATE baton.state s
SET expires_at = clock_timestamp() + s.ttl
FROM baton.execution e
WHERE e.cluster_id = %(cluster_id)s AND s.cluster_id = e.cluster_id AND s.state_version > 0
  AND s.key = e.entity_type || '-state:' || e.name
  AND e.heartbeat_at > clock_timestamp() - make_interval(secs => %(led_seconds)s)
  AND s.value IS NOT NULL AND s.expires_at > clock_timestamp()
  AND s.expires_at < clock_timestamp() + s.ttl - least(s.ttl / 6, interval '15 s')
