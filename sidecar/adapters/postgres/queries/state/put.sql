-- state/put: writes many entries, each on its own condition; what is not returned lost its compare-and-set.
-- ORDER BY key: two batches never wait for each other in a circle, nor for state/clear; "C" as the column has it,
-- whatever the database sorts by. The expected version is checked on the locked row; the EXISTS only keeps a row
-- from being created where one was expected.
WITH item AS MATERIALIZED (
    SELECT key, value, expected, make_interval(secs => ttl_seconds) AS ttl
    FROM unnest(%(keys)s::text[], %(values)s::bytea[], %(expected)s::bigint[], %(ttl_seconds)s::float8[])
         AS i (key, value, expected, ttl_seconds)
)
INSERT INTO baton.state AS s (cluster_id, key, version, value, ttl, updated_at, expires_at)
SELECT %(cluster_id)s, i.key, baton.unix_microseconds(clock_timestamp()), i.value, i.ttl,
       clock_timestamp(), clock_timestamp() + i.ttl
FROM item i
WHERE coalesce(i.expected, 0) = 0
   OR EXISTS (SELECT 1 FROM baton.state o
              WHERE o.cluster_id = %(cluster_id)s AND o.key = i.key AND o.state_version = 0
                AND o.version = i.expected)
ORDER BY i.key COLLATE "C"
ON CONFLICT (cluster_id, key, state_version) DO UPDATE
SET version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
    value = excluded.value, ttl = excluded.ttl,
    updated_at = clock_timestamp(), expires_at = clock_timestamp() + excluded.ttl,
    xact = excluded.xact, xact_horizon = excluded.xact_horizon
WHERE (SELECT i.expected IS NULL OR i.expected = CASE
           WHEN s.value IS NULL OR s.expires_at <= clock_timestamp() THEN 0 ELSE s.version END
       FROM item i WHERE i.key = s.key)
RETURNING s.key, s.version, s.updated_at, s.expires_at, statement_timestamp() AS as_of
