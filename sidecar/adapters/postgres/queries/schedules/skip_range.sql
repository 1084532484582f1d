-- schedules/skip_range: one row per schedule for consecutive ticks that are skipped outside a term: a pause ended, the
-- timing changed, or the schedule was retired.
INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, tick_last, tick_count, state, outcome,
    reason, due_at, finished_at, history)
SELECT %(cluster_id)s, group_id, 'schedule', name, schedule_id, tick, tick_last, tick_count, 'ended', 'skipped', reason,
    tick, clock_timestamp(), baton.run_event('[]', 'ended', 'skipped', 0, 0, %(runner_id)s, reason)
FROM unnest(%(group_ids)s::integer[], %(names)s::text[], %(schedule_ids)s::bigint[], %(ticks)s::timestamptz[],
    %(tick_lasts)s::timestamptz[], %(tick_counts)s::integer[], %(reasons)s::text[]
) AS skipped (group_id, name, schedule_id, tick, tick_last, tick_count, reason)
ON CONFLICT (cluster_id, name, tick) WHERE kind = 'schedule' DO NOTHING;
