-- reports/stats_buckets: the newest runs of a window, counted in parts of equal length by the time of their making.
WITH counted AS MATERIALIZED (
    SELECT created_at, outcome FROM baton.run
    WHERE cluster_id = %(cluster_id)s AND (%(name)s::text IS NULL OR name = %(name)s)
      AND id >= (SELECT baton.run_id_at(%(since)s)) AND id < (SELECT baton.run_id_at(%(until)s))
    ORDER BY id DESC LIMIT %(runs_max)s
)
SELECT least(%(parts)s - 1, greatest(0, floor(extract(epoch FROM created_at - %(since)s)
    / extract(epoch FROM %(until)s - %(since)s::timestamptz) * %(parts)s)))::integer AS part,
    count(*) FILTER (WHERE outcome = 'succeeded') AS succeeded, count(*) FILTER (WHERE outcome = 'failed') AS failed,
    count(*) FILTER (WHERE outcome = 'skipped') AS skipped, count(*) FILTER (WHERE outcome IS NULL) AS live
FROM counted GROUP BY part ORDER BY part;
