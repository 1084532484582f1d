-- reports/stats_names: counts and percentiles of the newest runs of a window, by name. The limit bounds the cost, however
-- many runs there are.
WITH counted AS MATERIALIZED (
    SELECT name, outcome,
        CASE WHEN kind = 'schedule' AND NOT backfill THEN extract(epoch FROM started_at - tick) END::float8 AS late,
        CASE WHEN outcome <> 'skipped' THEN extract(epoch FROM finished_at - started_at) END::float8 AS took FROM baton.run
    WHERE cluster_id = %(cluster_id)s AND (%(name)s::text IS NULL OR name = %(name)s)
      AND id >= (SELECT baton.run_id_at(%(since)s)) AND id < (SELECT baton.run_id_at(%(until)s))
    ORDER BY id DESC LIMIT %(runs_max)s
)
SELECT name, count(*) FILTER (WHERE outcome = 'succeeded') AS succeeded, count(*) FILTER (WHERE outcome = 'failed') AS failed,
    count(*) FILTER (WHERE outcome = 'skipped') AS skipped, count(*) FILTER (WHERE outcome IS NULL) AS live,
    percentile_cont(ARRAY[0.5, 0.95, 0.99, 1.0]) WITHIN GROUP (ORDER BY late) AS lateness,
    percentile_cont(ARRAY[0.5, 0.95, 0.99, 1.0]) WITHIN GROUP (ORDER BY took) AS duration
FROM counted GROUP BY name ORDER BY failed DESC, count(*) DESC, name LIMIT 200;
