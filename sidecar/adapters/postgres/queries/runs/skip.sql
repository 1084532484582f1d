-- runs/skip: ends runs that are queued or waiting as skipped. SKIP LOCKED: a deletion or a config file may be changing some
-- of them and want the others, in another order; runs that are left are tried again.
WITH fence AS MATERIALIZED (
    -- include: fence
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
SELECT EXISTS (SELECT FROM fence) AS is_current, changed.id, changed.kind
FROM (SELECT) AS one LEFT JOIN changed ON true;
