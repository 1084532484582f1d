-- state/put_once: state/put for entries of which some carry a request_id. One that was answered within the
-- last hour is answered again from `state_request` and writes nothing. The same request still under way on
-- another connection breaks a unique key: nothing is written, and asking again finds its answer. (So does it after
-- a compare-and-set that lost: what it lost to may be itself.)
WITH item AS MATERIALIZED (
    SELECT i.key, i.value, i.expected, make_interval(secs => i.ttl_seconds) AS ttl, i.request_id, i.digest
    FROM unnest(%(keys)s::text[], %(values)s::bytea[], %(expected)s::bigint[], %(ttl_seconds)s::float8[],
                %(request_ids)s::text[], %(digests)s::bytea[])
         AS i (key, value, expected, ttl_seconds, request_id, digest)
), seen AS MATERIALIZED (
    SELECT r.key, r.version, r.updated_at, r.expires_at, r.digest
    FROM item i
    JOIN baton.state_request r
      ON r.cluster_id = %(cluster_id)s AND r.key = i.key AND r.request_id = i.request_id
), put AS (
    INSERT INTO baton.state AS s (cluster_id, key, version, value, ttl, updated_at, expires_at)
    SELECT %(cluster_id)s, i.key, baton.unix_microseconds(clock_timestamp()), i.value, i.ttl,
           clock_timestamp(), clock_timestamp() + i.ttl
    FROM item i
    WHERE NOT EXISTS (SELECT 1 FROM seen WHERE seen.key = i.key)
      AND (coalesce(i.expected, 0) = 0
           OR EXISTS (SELECT 1 FROM baton.state o
                      WHERE o.cluster_id = %(cluster_id)s AND o.key = i.key AND o.state_version = 0
                        AND o.version = i.expected))
    ORDER BY i.key COLLATE "C"
    ON CONFLICT (cluster_id, key, state_version) DO UPDATE
    SET version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
        value = excluded.value, ttl = excluded.ttl,
        updated_at = clock_timestamp(), expires_at = clock_timestamp() + excluded.ttl,
        xact = excluded.xact, xact_horizon = excluded.xact_horizon
    WHERE (SELECT i.expected IS NULL OR i.expected = CASE
               WHEN s.value IS NULL OR s.expires_at <= clock_timestamp() THEN 0 ELSE s.version END
           FROM item i WHERE i.key = s.key)
    RETURNING s.key, s.version, s.updated_at, s.expires_at
), noted AS (
    INSERT INTO baton.state_request (cluster_id, key, request_id, digest, version, updated_at, expires_at)
    SELECT %(cluster_id)s, i.key, i.request_id, i.digest, p.version, p.updated_at, p.expires_at
    FROM put p JOIN item i USING (key)
    WHERE i.request_id IS NOT NULL
    ORDER BY i.key COLLATE "C"
)
SELECT key, version, updated_at, expires_at, NULL::bytea AS digest, statement_timestamp() AS as_of FROM put
UNION ALL
SELECT key, version, updated_at, expires_at, digest, statement_timestamp() FROM seen
