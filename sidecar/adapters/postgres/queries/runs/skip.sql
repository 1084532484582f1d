-- End runs that have not begun, or wait, as skipped.
WITH fence AS MATERIALIZED (
    SELECT 1 FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
), changed AS (
    UPDATE baton.run SET
        state = 'ended', outcome = 'skipped', reason = %(reason)s, finished_at = clock_timestamp(),
        history = baton.run_event(history, 'ended', 'skipped', attempt, %(epoch)s, %(runner_id)s, %(cause)s)
    WHERE id = ANY (%(run_ids)s::bigint[]) AND group_id = %(group_id)s AND state IN ('queued', 'waiting')
      AND EXISTS (SELECT FROM fence)
    RETURNING id, kind
)
SELECT EXISTS (SELECT FROM fence) AS stands, changed.id, changed.kind
FROM (SELECT) AS one LEFT JOIN changed ON true;
