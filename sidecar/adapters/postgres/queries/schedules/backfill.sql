-- Runs for past ticks that have no row yet, not even one that they share. Asking again makes none twice.
INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, overlap, backfill, state, due_at, history)
SELECT %(cluster_id)s, %(group_id)s, 'schedule', %(name)s, %(schedule_id)s, wanted.tick, %(overlap)s, true, 'queued',
    clock_timestamp(), baton.run_event('[]', 'queued', NULL, 0, 0, %(runner_id)s, 'backfilled')
FROM unnest(%(ticks)s::timestamptz[]) WITH ORDINALITY AS wanted (tick, place)
WHERE NOT EXISTS (
    SELECT FROM baton.run
    WHERE cluster_id = %(cluster_id)s AND name = %(name)s AND kind = 'schedule'
      AND tick <= wanted.tick AND coalesce(tick_last, tick) >= wanted.tick)
ORDER BY wanted.place
ON CONFLICT (cluster_id, name, tick) WHERE kind = 'schedule' DO NOTHING
RETURNING id;
