-- state/extend: owned state does not expire while it is led: every heartbeat counts like a write.
UPDATE baton.state s
SET expires_at = e.heartbeat_at + s.ttl
FROM baton.execution e
WHERE e.cluster_id = %(cluster_id)s AND s.cluster_id = e.cluster_id AND s.state_version > 0
  AND s.key = e.entity_type || '-state:' || e.name
  AND s.value IS NOT NULL AND s.expires_at < e.heartbeat_at + s.ttl
