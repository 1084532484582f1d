-- state/put_fenced: writes one entry on behalf of a run, if that run is live and may write this key.
-- The term and the run are locked FOR SHARE until the commit, so a takeover or a completion comes before or after.
-- A repeated request gets the earlier answer once that is replicated, even if the run has ended; it takes no lock.
WITH seen AS MATERIALIZED (
    SELECT r.version, r.updated_at, r.expires_at, r.digest, baton.await_replication_at_commit()
    FROM baton.state_request r
    WHERE r.cluster_id = %(cluster_id)s AND r.key = %(key)s AND r.request_id = %(request_id)s
), ref AS (
    SELECT %(run_id)s::bigint AS run_id, %(attempt)s::bigint AS attempt
    WHERE NOT EXISTS (SELECT FROM seen)
), fence AS MATERIALIZED (
    -- include: fence_of_run
), live AS MATERIALIZED (
    SELECT CASE run.kind WHEN 'singleton' THEN 'singleton' ELSE 'schedule' END AS owner_kind, run.name
    FROM baton.run JOIN ref ON
        -- include: live_run
    WHERE run.group_id = (SELECT group_id FROM fence)
    FOR SHARE OF run
), allowed AS MATERIALIZED (
    SELECT 1 AS one FROM live
    WHERE %(owner_kind)s::text IS NULL
       OR (live.owner_kind = %(owner_kind)s AND live.name = %(owner_name)s)
), item AS NOT MATERIALIZED (
    SELECT %(key)s::text AS key, %(state_version)s::integer AS state_version,
           -- The versions of a key increase across its state_versions.
           (SELECT max(o.version) + 1 FROM baton.state o
            WHERE o.cluster_id = %(cluster_id)s AND o.key = %(key)s) AS version_min,
           %(value)s::bytea AS value, %(expected)s::bigint AS expected, make_interval(secs => %(ttl_seconds)s) AS ttl
    FROM allowed
), put AS (
    -- include: put_state
    WHERE %(expected)s::bigint IS NULL OR %(expected)s =
        -- include: live_version
    RETURNING s.version, s.updated_at, s.expires_at
), recorded AS (
    INSERT INTO baton.state_request (cluster_id, key, request_id, digest, version, updated_at, expires_at)
    SELECT %(cluster_id)s, %(key)s, %(request_id)s, %(digest)s, version, updated_at, expires_at
    FROM put WHERE %(request_id)s::text IS NOT NULL
)
SELECT EXISTS (SELECT 1 FROM live) AS live, EXISTS (SELECT 1 FROM allowed) AS allowed,
       a.version, a.updated_at, a.expires_at, a.digest, statement_timestamp() AS as_of
FROM (VALUES (1)) AS always (one)
LEFT JOIN (SELECT version, updated_at, expires_at, NULL::bytea AS digest FROM put
           UNION ALL SELECT version, updated_at, expires_at, digest FROM seen) a ON true
