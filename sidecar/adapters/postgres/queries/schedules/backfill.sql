-- Runs for past ticks that have no row yet, not even one that they share. Asking again makes none twice: a row of a
-- tick's own is found by ON CONFLICT. Those that ticks share are gathered once, between two ends of the index; tried
-- for each tick, all earlier rows would be read each time.
-- nearest: rows do not overlap, so that of all that begin before the first tick asked for only the last can reach it.
WITH wanted AS MATERIALIZED (
    SELECT tick, place FROM unnest(%(ticks)s::timestamptz[]) WITH ORDINALITY AS w (tick, place)
), nearest AS MATERIALIZED (
    SELECT tick FROM baton.run
    WHERE cluster_id = %(cluster_id)s AND name = %(name)s AND kind = 'schedule'
      AND tick <= (SELECT min(tick) FROM wanted)
    ORDER BY tick DESC LIMIT 1
), shared AS MATERIALIZED (
    SELECT tick, tick_last FROM baton.run
    WHERE cluster_id = %(cluster_id)s AND name = %(name)s AND kind = 'schedule' AND tick_last IS NOT NULL
      AND tick >= (SELECT coalesce((SELECT tick FROM nearest), min(tick)) FROM wanted)
      AND tick <= (SELECT max(tick) FROM wanted)
)
INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, overlap, backfill, state, due_at, history)
SELECT %(cluster_id)s, %(group_id)s, 'schedule', %(name)s, %(schedule_id)s, wanted.tick, %(overlap)s, true, 'queued',
    clock_timestamp(), baton.run_event('[]', 'queued', NULL, 0, 0, %(runner_id)s, 'backfilled')
FROM wanted
WHERE NOT EXISTS (SELECT FROM shared WHERE wanted.tick BETWEEN shared.tick AND shared.tick_last)
ORDER BY wanted.place
ON CONFLICT (cluster_id, name, tick) WHERE kind = 'schedule' DO NOTHING
RETURNING id;
