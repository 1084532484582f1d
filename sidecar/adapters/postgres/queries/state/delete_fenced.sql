-- state/delete_fenced: deletes one entry on behalf of a run, if that run is live and may write this key.
WITH fence AS MATERIALIZED (
    SELECT t.group_id FROM baton.term t
    WHERE t.group_id = (SELECT r.group_id FROM baton.run r
                        WHERE r.id = %(run_id)s AND r.cluster_id = %(cluster_id)s)
      AND t.epoch = %(epoch)s
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
), gone AS (
    UPDATE baton.state s
    SET value = NULL, ttl = NULL, expires_at = NULL, updated_at = clock_timestamp(),
        version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
        xact = pg_current_xact_id(), xact_horizon = pg_snapshot_xmin(pg_current_snapshot())
    FROM allowed
    WHERE s.cluster_id = %(cluster_id)s AND s.key = %(key)s AND s.state_version = %(state_version)s
      AND s.value IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp())
      AND (%(expected)s::bigint IS NULL OR s.version = %(expected)s)
    RETURNING s.version, s.updated_at
)
SELECT EXISTS (SELECT 1 FROM live) AS live, EXISTS (SELECT 1 FROM allowed) AS allowed,
       g.version, g.updated_at, statement_timestamp() AS as_of
FROM (VALUES (1)) AS always (one) LEFT JOIN gone g ON true
