-- schedules/config_lock_all: locks every schedule that a file may change, in the order of ids.
-- The definition as text: ten thousand parsed ones would be in memory at once.
SELECT schedule.id, schedule.group_id, schedule.name, source, definition::text, payload, paused, pause_note, watermark,
    next_tick, next_due_at, missed_total, version, schedule.created_at, changed_at, counted_from, retired_at,
    leader_group.name AS group_name, clock_timestamp() AS now
FROM baton.schedule JOIN baton.leader_group ON leader_group.id = schedule.group_id
WHERE schedule.cluster_id = %(cluster_id)s AND (source = %(source)s OR schedule.name = ANY (%(names)s::text[]))
ORDER BY schedule.id FOR NO KEY UPDATE OF schedule;
