-- Make a schedule, or bring back a retired one under the same name. A living one is left alone.
INSERT INTO baton.schedule AS s (cluster_id, group_id, name, source, definition, payload, watermark, next_tick,
    next_due_at)
VALUES (%(cluster_id)s, %(group_id)s, %(name)s, %(source)s, %(definition)s, %(payload)s, %(watermark)s, %(next_tick)s,
    %(next_due_at)s)
ON CONFLICT (cluster_id, name) DO UPDATE SET
    group_id = excluded.group_id, source = excluded.source, definition = excluded.definition,
    payload = excluded.payload, watermark = excluded.watermark, next_tick = excluded.next_tick,
    next_due_at = excluded.next_due_at, paused = false, pause_note = '', version = s.version + 1,
    changed_at = clock_timestamp(), counted_from = clock_timestamp(), retired_at = NULL
WHERE s.retired_at IS NOT NULL
RETURNING s.id;
