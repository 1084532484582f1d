-- cluster/groups: the ids of the named groups, created where missing with a term and a beat.
-- A new group counts as cleanly released on this server's timeline: it never had a leader.
WITH wanted AS (
    SELECT unnest(%(names)s::text[]) AS name),
created AS (
    INSERT INTO baton.leader_group (cluster_id, name)
    SELECT %(cluster_id)s, name FROM wanted
    WHERE NOT EXISTS (SELECT FROM baton.leader_group AS g
                      WHERE g.cluster_id = %(cluster_id)s AND g.name = wanted.name)
    ORDER BY name  -- the same order in all runners: two that start at once cannot deadlock
    ON CONFLICT DO NOTHING
    RETURNING id, name),
terms AS (
    INSERT INTO baton.term (group_id, timeline)
    SELECT id, left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM created),
beats AS (
    INSERT INTO baton.beat (group_id) SELECT id FROM created)
SELECT id, name FROM created
UNION ALL
SELECT g.id, g.name FROM baton.leader_group AS g JOIN wanted USING (name)
WHERE g.cluster_id = %(cluster_id)s;
