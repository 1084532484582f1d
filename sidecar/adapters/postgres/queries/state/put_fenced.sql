-- state/put_fenced: writes one entry on behalf of a run, if that run is live and may write this key.
-- The term and the run are locked FOR SHARE until the commit: a takeover or a completion comes before or after.
-- An answer given before is given again, even if the run has ended meanwhile.
WITH seen AS MATERIALIZED (
    SELECT r.version, r.updated_at, r.expires_at, r.digest
    FROM baton.state_request r
    WHERE r.cluster_id = %(cluster_id)s AND r.key = %(key)s AND r.request_id = %(request_id)s
), fence AS MATERIALIZED (
    SELECT t.group_id FROM baton.term t
    WHERE t.group_id = (SELECT r.group_id FROM baton.run r
                        WHERE r.id = %(run_id)s AND r.cluster_id = %(cluster_id)s)
      AND t.epoch = %(epoch)s
      AND NOT EXISTS (SELECT 1 FROM seen)
    FOR SHARE
), live AS MATERIALIZED (
    SELECT CASE r.kind WHEN 'singleton' THEN 'singleton' ELSE 'schedule' END AS owner_kind, r.name
    FROM fence f JOIN baton.run r ON r.group_id = f.group_id
    WHERE r.id = %(run_id)s AND r.state = 'running' AND r.attempt = %(attempt)s AND r.epoch = %(epoch)s
    FOR SHARE OF r
), allowed AS MATERIALIZED (
    SELECT 1 AS one FROM live
    WHERE %(owner_kind)s::text IS NULL
       OR (live.owner_kind = %(owner_kind)s AND live.name = %(owner_name)s)
), put AS MATERIALIZED (
    SELECT p.new_version AS version, p.written_at AS updated_at, p.gone_at AS expires_at
    FROM allowed,
         baton.put_state(%(cluster_id)s, %(key)s, %(value)s, %(state_version)s,
                         make_interval(secs => %(ttl_seconds)s), %(expected)s) p
), noted AS (
    INSERT INTO baton.state_request (cluster_id, key, request_id, digest, version, updated_at, expires_at)
    SELECT %(cluster_id)s, %(key)s, %(request_id)s, %(digest)s, version, updated_at, expires_at
    FROM put WHERE %(request_id)s::text IS NOT NULL
)
SELECT EXISTS (SELECT 1 FROM live) AS live, EXISTS (SELECT 1 FROM allowed) AS allowed,
       a.version, a.updated_at, a.expires_at, a.digest, statement_timestamp() AS as_of
FROM (VALUES (1)) AS always (one)
LEFT JOIN (SELECT version, updated_at, expires_at, NULL::bytea AS digest FROM put
           UNION ALL SELECT version, updated_at, expires_at, digest FROM seen) a ON true
