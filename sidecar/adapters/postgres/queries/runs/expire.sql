-- runs/expire: skips queued ticks that were never started and are too old by now (misfires).
-- Schedules are locked first, in the order of ids, as in every statement: a deletion locks its schedule, then its runs.
WITH fence AS MATERIALIZED (
    -- include: fence
), old AS MATERIALIZED (
    SELECT run.id, run.schedule_id FROM baton.run JOIN baton.schedule ON schedule.id = run.schedule_id
    WHERE run.group_id = %(group_id)s AND run.state = 'queued' AND
          -- include: may_misfire
      AND run.due_at < (SELECT clock_timestamp()) -
          -- include: misfire_after
      AND EXISTS (SELECT FROM fence)
    ORDER BY run.id LIMIT %(limit)s
), held AS MATERIALIZED (
    SELECT id FROM baton.schedule WHERE id = ANY (ARRAY (SELECT schedule_id FROM old))
    ORDER BY id FOR NO KEY UPDATE
), late AS MATERIALIZED (
    SELECT id, schedule_id FROM baton.run
    -- ARRAY (…), not EXISTS: every schedule is locked before the first run.
    WHERE id = ANY (ARRAY (SELECT id FROM old)) AND schedule_id = ANY (ARRAY (SELECT id FROM held))
      AND group_id = %(group_id)s AND state = 'queued' AND attempt = 0
    FOR UPDATE SKIP LOCKED
), counted AS (
    UPDATE baton.schedule SET missed_total = missed_total + missed.ticks
    FROM (SELECT schedule_id, count(*) AS ticks FROM late GROUP BY schedule_id) AS missed
    WHERE schedule.id = missed.schedule_id
), changed AS (
    UPDATE baton.run SET state = 'ended', outcome = 'skipped', reason = 'misfire', finished_at = clock_timestamp(),
        history = baton.run_event(history, 'ended', 'skipped', 0, %(epoch)s, %(runner_id)s, 'misfire')
    WHERE id = ANY (ARRAY (SELECT id FROM late))
    RETURNING id, kind, state, outcome, reason, finished_at
)
SELECT EXISTS (SELECT FROM fence) AS is_current, changed.*
FROM (SELECT) AS one LEFT JOIN changed ON true;
