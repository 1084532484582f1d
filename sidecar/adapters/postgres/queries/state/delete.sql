-- state/delete: turns an entry that nobody owns into a tombstone; no row if there is none, or another version.
UPDATE baton.state s
SET value = NULL, ttl = NULL, expires_at = NULL, updated_at = clock_timestamp(),
    version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
    xact = pg_current_xact_id(), xact_horizon = pg_snapshot_xmin(pg_current_snapshot())
WHERE s.cluster_id = %(cluster_id)s AND s.key = %(key)s AND s.state_version = 0
  AND s.value IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp())
  AND (%(expected)s::bigint IS NULL OR s.version = %(expected)s)
RETURNING s.version, s.updated_at, statement_timestamp() AS as_of
