-- schedules/upcoming: schedules of a group that are due within the horizon, soonest first.
SELECT schedule.id, schedule.name, schedule.definition::text, schedule.paused, schedule.watermark,
    schedule.next_due_at, schedule.next_tick, schedule.version, clock.now
FROM (SELECT clock_timestamp() AS now) AS clock
LEFT JOIN baton.schedule ON schedule.group_id = %(group_id)s AND schedule.retired_at IS NULL
    AND schedule.next_due_at <= (SELECT clock_timestamp()) + make_interval(secs => %(horizon_seconds)s)
ORDER BY schedule.next_due_at, schedule.id LIMIT %(limit)s;
