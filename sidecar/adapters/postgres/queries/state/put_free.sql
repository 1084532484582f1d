-- state/put_free: state/put_once that waits for no row: an entry that another session has locked is not written and is
-- returned with `locked`. Used only after a batch has waited for a lock: it takes longer, since it locks each row first.
WITH wanted AS MATERIALIZED (
    SELECT i.key, i.value, i.expected, make_interval(secs => i.ttl_seconds) AS ttl, i.request_id, i.digest
    FROM unnest(%(keys)s::text[], %(values)s::bytea[], %(expected)s::bigint[], %(ttl_seconds)s::float8[],
                %(request_ids)s::text[], %(digests)s::bytea[])
         AS i (key, value, expected, ttl_seconds, request_id, digest)
), patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', '300ms', true)
), seen AS MATERIALIZED (
    SELECT r.key, r.version, r.updated_at, r.expires_at, r.digest, baton.await_replication_at_commit()
    FROM wanted w
    JOIN baton.state_request r
      ON r.cluster_id = %(cluster_id)s AND r.key = w.key AND r.request_id = w.request_id
), free AS MATERIALIZED (
    SELECT state.key FROM baton.state
    WHERE state.cluster_id = %(cluster_id)s AND state.key = ANY (%(keys)s::text[]) AND state.state_version = 0
    ORDER BY state.key COLLATE "C" FOR UPDATE SKIP LOCKED
), locked AS MATERIALIZED (
    SELECT state.key FROM baton.state
    WHERE state.cluster_id = %(cluster_id)s AND state.key = ANY (%(keys)s::text[]) AND state.state_version = 0
      AND state.key <> ALL (ARRAY (SELECT key FROM free)) AND state.key <> ALL (ARRAY (SELECT key FROM seen))
), item AS MATERIALIZED (
    SELECT key, 0 AS state_version, NULL::bigint AS version_min, value, expected, ttl FROM wanted, patience
    WHERE key <> ALL (ARRAY (SELECT key FROM seen)) AND key <> ALL (ARRAY (SELECT key FROM locked))
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
SELECT key, version, updated_at, expires_at, NULL::bytea AS digest, as_of, false AS locked FROM put
UNION ALL
SELECT key, version, updated_at, expires_at, digest, statement_timestamp(), false FROM seen
UNION ALL
SELECT key, NULL, NULL, NULL, NULL, statement_timestamp(), true FROM locked
