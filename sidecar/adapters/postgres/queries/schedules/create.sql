-- schedules/create: creates schedules. A name that is taken, perhaps just now, is left alone.
INSERT INTO baton.schedule (cluster_id, group_id, name, source, definition, payload, watermark, next_tick, next_due_at)
SELECT %(cluster_id)s, new.*
FROM unnest(%(group_id)s::integer[], %(name)s::text[], %(source)s::text[], %(definition)s::jsonb[], %(payload)s::bytea[],
    %(watermark)s::timestamptz[], %(next_tick)s::timestamptz[], %(next_due_at)s::timestamptz[]) AS new
ON CONFLICT (cluster_id, name) DO NOTHING
RETURNING id;
