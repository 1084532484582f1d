-- runs/backlog: how much of a group is due and has not started: runs, and schedules with a tick that has no run yet.
-- It counts up to a limit, oldest first. A run that waits for another run of its schedule is no backlog.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), due AS MATERIALIZED (
    SELECT due_at FROM baton.run
    WHERE group_id = %(group_id)s AND state IN ('queued', 'waiting') AND due_at <= (SELECT now FROM clock)
      AND (overlap = 'allow' OR NOT EXISTS (
          SELECT FROM baton.run AS other WHERE other.schedule_id = run.schedule_id AND other.state = 'running'))
    ORDER BY due_at LIMIT %(limit)s
), late AS MATERIALIZED (
    SELECT next_due_at FROM baton.schedule
    WHERE group_id = %(group_id)s AND retired_at IS NULL AND next_due_at <= (SELECT now FROM clock)
    ORDER BY next_due_at LIMIT %(limit)s
)
SELECT (SELECT count(*) FROM due) AS runs, (SELECT count(*) FROM late) AS schedules,
    coalesce(extract(epoch FROM (SELECT now FROM clock) -
        least((SELECT min(due_at) FROM due), (SELECT min(next_due_at) FROM late))), 0)::float8 AS seconds;
