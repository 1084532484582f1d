-- state/put_once: state/put for entries of which some carry a request_id. A request that was answered within the
-- last hour gets the same answer from `state_request`, once that is replicated. If the same request is still under way
-- on another connection, this fails with a unique violation and writes nothing; a repeat finds the answer. (A lost
-- compare-and-set is repeated too: it may have lost to the same request.)
-- patience: a row that another session has locked makes the statement fail, not wait; see state/put_free.
WITH patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', '300ms', true)
), wanted AS MATERIALIZED (
    SELECT i.key, i.value, i.expected, make_interval(secs => i.ttl_seconds) AS ttl, i.request_id, i.digest
    FROM unnest(%(keys)s::text[], %(values)s::bytea[], %(expected)s::bigint[], %(ttl_seconds)s::float8[],
                %(request_ids)s::text[], %(digests)s::bytea[])
         AS i (key, value, expected, ttl_seconds, request_id, digest)
), seen AS MATERIALIZED (
    SELECT r.key, r.version, r.updated_at, r.expires_at, r.digest, baton.await_replication_at_commit()
    FROM wanted w
    JOIN baton.state_request r
      ON r.cluster_id = %(cluster_id)s AND r.key = w.key AND r.request_id = w.request_id
), item AS MATERIALIZED (
    SELECT key, 0 AS state_version, NULL::bigint AS version_min, value, expected, ttl FROM wanted, patience
    WHERE NOT EXISTS (SELECT FROM seen WHERE seen.key = wanted.key)
), put AS (
    -- include: put_state
    WHERE (SELECT i.expected IS NULL OR i.expected =
               -- include: live_version
           FROM item i WHERE i.key = s.key)
    RETURNING s.key, s.version, s.updated_at, s.expires_at, statement_timestamp() AS as_of
), recorded AS (
    INSERT INTO baton.state_request (cluster_id, key, request_id, digest, version, updated_at, expires_at)
    SELECT %(cluster_id)s, w.key, w.request_id, w.digest, p.version, p.updated_at, p.expires_at
    FROM put p JOIN wanted w USING (key)
    WHERE w.request_id IS NOT NULL
    ORDER BY w.key COLLATE "C"
)
SELECT key, version, updated_at, expires_at, NULL::bytea AS digest, as_of FROM put
UNION ALL
SELECT key, version, updated_at, expires_at, digest, statement_timestamp() FROM seen
