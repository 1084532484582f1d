-- state/put_one: state/put for a single entry. Postgres caches its plan; it plans the array form at each use, which takes
-- 2.5 times as long (median server CPU 374 against 953 µs).
-- patience: a row that another session has locked makes the statement fail, not wait; see state/put_free.
WITH patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', '300ms', true)
), item AS NOT MATERIALIZED (
    SELECT %(key)s::text AS key, 0 AS state_version, NULL::bigint AS version_min,
           %(value)s::bytea AS value, %(expected)s::bigint AS expected, make_interval(secs => %(ttl_seconds)s) AS ttl
    FROM patience
)
-- include: put_state
WHERE %(expected)s::bigint IS NULL OR %(expected)s =
    -- include: live_version
RETURNING s.key, s.version, s.updated_at, s.expires_at, statement_timestamp() AS as_of
