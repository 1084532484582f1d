-- state/delete_fenced: deletes one entry on behalf of a run, if that run is live and may write this key.
WITH ref AS NOT MATERIALIZED (
    SELECT %(run_id)s::bigint AS run_id, %(attempt)s::bigint AS attempt
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
    SELECT %(key)s::text AS key, %(state_version)s::integer AS state_version, %(expected)s::bigint AS expected
    FROM allowed
), gone AS (
    -- include: delete_state
)
SELECT EXISTS (SELECT 1 FROM live) AS live, EXISTS (SELECT 1 FROM allowed) AS allowed,
       g.version, g.updated_at, statement_timestamp() AS as_of
FROM (VALUES (1)) AS always (one) LEFT JOIN gone g ON true
