-- state/put_one: state/put for a single entry; Postgres keeps its plan, that of the batch it makes anew each time.
INSERT INTO baton.state AS s (cluster_id, key, version, value, ttl, updated_at, expires_at)
SELECT %(cluster_id)s, %(key)s, baton.unix_microseconds(clock_timestamp()), %(value)s,
       make_interval(secs => %(ttl_seconds)s),
       clock_timestamp(), clock_timestamp() + make_interval(secs => %(ttl_seconds)s)
WHERE coalesce(%(expected)s::bigint, 0) = 0
   OR EXISTS (SELECT 1 FROM baton.state o
              WHERE o.cluster_id = %(cluster_id)s AND o.key = %(key)s AND o.state_version = 0
                AND o.version = %(expected)s)
ON CONFLICT (cluster_id, key, state_version) DO UPDATE
SET version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
    value = excluded.value, ttl = excluded.ttl,
    updated_at = clock_timestamp(), expires_at = clock_timestamp() + excluded.ttl,
    xact = excluded.xact, xact_horizon = excluded.xact_horizon
WHERE %(expected)s::bigint IS NULL
   OR %(expected)s = CASE WHEN s.value IS NULL OR s.expires_at <= clock_timestamp() THEN 0 ELSE s.version END
RETURNING s.key, s.version, s.updated_at, s.expires_at, statement_timestamp() AS as_of
