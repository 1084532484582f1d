-- schedules/backfill: creates runs for past ticks that have no row, not even one shared with other ticks. A repeated
-- request creates none twice: ON CONFLICT finds a tick's own row. Shared rows are collected once, from a range of the
-- index; looked up per tick, all earlier rows would be read each time.
-- nearest: rows do not overlap, so of those that begin before the first wanted tick only the last can contain it.
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
