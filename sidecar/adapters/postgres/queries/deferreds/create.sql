-- deferreds/create: makes a deferred, or finds it; its salt. No row: the run is not live.
-- The term and the run are locked FOR SHARE until the commit: a takeover or a completion comes before or after.
-- Found already is the common case after a change of leader and writes nothing. DO UPDATE: of two who make it
-- at once the second waits for the first, and both get the same row.
WITH fence AS MATERIALIZED (
    SELECT t.group_id FROM baton.term t
    WHERE t.group_id = (SELECT r.group_id FROM baton.run r
                        WHERE r.id = %(run_id)s::bigint AND r.cluster_id = %(cluster_id)s)
      AND t.epoch = %(epoch)s
    FOR SHARE
), live AS MATERIALIZED (
    SELECT r.id FROM fence f JOIN baton.run r ON r.group_id = f.group_id
    WHERE r.id = %(run_id)s::bigint AND r.state = 'running' AND r.attempt = %(attempt)s AND r.epoch = %(epoch)s
    FOR SHARE OF r
), maker AS MATERIALIZED (
    SELECT id AS run_id FROM live
    UNION ALL
    SELECT 0 WHERE %(run_id)s::bigint IS NULL
), found AS MATERIALIZED (
    SELECT d.salt FROM baton.deferred d JOIN maker m ON d.run_id = m.run_id
    WHERE d.cluster_id = %(cluster_id)s AND d.name = %(name)s
), made AS (
    INSERT INTO baton.deferred AS d (id, cluster_id, run_id, name, salt, expires_at)
    SELECT %(id)s, %(cluster_id)s, m.run_id, %(name)s, %(salt)s,
           clock_timestamp() + make_interval(secs => %(ttl_seconds)s)
    FROM maker m WHERE NOT EXISTS (SELECT FROM found)
    ON CONFLICT (cluster_id, run_id, name) DO UPDATE SET name = d.name
    RETURNING d.salt
)
SELECT salt FROM found UNION ALL SELECT salt FROM made
