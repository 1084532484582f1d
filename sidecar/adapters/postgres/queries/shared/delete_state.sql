-- shared/delete_state: deletes the live entry in `item` (key, state_version, expected), if it has the expected version.
UPDATE baton.state s SET
    -- include: tombstone
FROM item i
WHERE s.cluster_id = %(cluster_id)s AND s.key = i.key AND s.state_version = i.state_version
  AND s.value IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp())
  AND (i.expected IS NULL OR s.version = i.expected)
RETURNING s.version, s.updated_at
