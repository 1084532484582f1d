-- Ticks that were queued and never begun, and are by now older than `skip_if_older_than`, or than `catch_up: none`
-- forgives: misfires, as if they had been found so late. What was begun once, and what was backfilled, goes on.
-- Schedules are locked first, and in the order of ids, as everywhere: a deletion holds its schedule, then ends its runs.
WITH fence AS MATERIALIZED (
    SELECT 1 FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
), old AS MATERIALIZED (
    SELECT run.id, run.schedule_id FROM baton.run JOIN baton.schedule ON schedule.id = run.schedule_id
    WHERE run.group_id = %(group_id)s AND run.state = 'queued' AND run.kind = 'schedule'
      AND run.attempt = 0 AND NOT run.backfill
      AND run.due_at < (SELECT clock_timestamp())
          - make_interval(secs => greatest(0, least(1e10,
              CASE WHEN jsonb_typeof(definition -> 'skip_if_older_than_seconds') = 'number'
                   THEN (definition -> 'skip_if_older_than_seconds')::numeric END,
              CASE WHEN definition ->> 'catch_up' = 'none' THEN %(none_seconds)s::numeric END))::double precision)
      AND EXISTS (SELECT FROM fence)
    ORDER BY run.id LIMIT %(limit)s
), held AS MATERIALIZED (
    SELECT id FROM baton.schedule WHERE id = ANY (ARRAY (SELECT schedule_id FROM old))
    ORDER BY id FOR NO KEY UPDATE
), late AS MATERIALIZED (
    SELECT id, schedule_id FROM baton.run
    -- ARRAY (…), not EXISTS: every schedule is held before the first run is.
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
SELECT EXISTS (SELECT FROM fence) AS stands, changed.*
FROM (SELECT) AS one LEFT JOIN changed ON true;
