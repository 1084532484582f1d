-- schedules/skip_range: one row for consecutive ticks that are skipped outside a term: a pause ended, or the timing changed.
INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, tick_last, tick_count, state, outcome,
    reason, due_at, finished_at, history)
VALUES (%(cluster_id)s, %(group_id)s, 'schedule', %(name)s, %(schedule_id)s, %(tick)s, %(tick_last)s, %(tick_count)s,
    'ended', 'skipped', %(reason)s, %(tick)s, clock_timestamp(),
    baton.run_event('[]', 'ended', 'skipped', 0, 0, %(runner_id)s, %(reason)s))
ON CONFLICT (cluster_id, name, tick) WHERE kind = 'schedule' DO NOTHING;
