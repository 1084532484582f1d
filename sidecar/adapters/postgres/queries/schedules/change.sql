-- Write a whole schedule that this transaction holds.
UPDATE baton.schedule SET
    group_id = %(group_id)s, source = %(source)s, definition = %(definition)s, payload = %(payload)s,
    paused = %(paused)s, pause_note = %(pause_note)s, watermark = %(watermark)s, next_tick = %(next_tick)s,
    next_due_at = %(next_due_at)s, version = version + 1, changed_at = clock_timestamp(),
    counted_from = CASE WHEN %(recount)s THEN clock_timestamp() ELSE counted_from END, retired_at = NULL
WHERE id = %(id)s;
