-- runs/prune: deletes runs that ended long ago, in batches. SKIP LOCKED: pruning never waits.
WITH old AS MATERIALIZED (
    SELECT id FROM baton.run
    WHERE group_id = %(group_id)s AND state = 'ended'
      AND finished_at < (SELECT clock_timestamp()) - make_interval(secs => %(keep_seconds)s)
    ORDER BY finished_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM baton.run WHERE id = ANY (ARRAY (SELECT id FROM old)) RETURNING id
)
SELECT count(*) AS pruned FROM gone;
