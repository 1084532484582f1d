-- End runs that have not begun, or wait, as skipped. SKIP LOCKED: a deletion or a file that changes some of them just
-- now may want the others too, in another order; what it leaves is looked at again.
WITH fence AS MATERIALIZED (
    SELECT 1 FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
), idle AS MATERIALIZED (
    SELECT id FROM baton.run
    WHERE id = ANY (%(run_ids)s::bigint[]) AND group_id = %(group_id)s AND state IN ('queued', 'waiting')
      AND EXISTS (SELECT FROM fence)
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE baton.run SET
        state = 'ended', outcome = 'skipped', reason = %(reason)s, finished_at = clock_timestamp(),
        history = baton.run_event(history, 'ended', 'skipped', attempt, %(epoch)s, %(runner_id)s, %(cause)s)
    WHERE id = ANY (ARRAY (SELECT id FROM idle))
    RETURNING id, kind
)
SELECT EXISTS (SELECT FROM fence) AS stands, changed.id, changed.kind
FROM (SELECT) AS one LEFT JOIN changed ON true;
