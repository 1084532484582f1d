-- reports/stats_window: the window that the statistics are of, and whether it has more runs than are counted.
SELECT now.at - make_interval(secs => %(seconds)s) AS since, now.at AS until,
    EXISTS (
        SELECT FROM baton.run
        WHERE cluster_id = %(cluster_id)s AND (%(name)s::text IS NULL OR name = %(name)s)
          AND id >= (SELECT baton.run_id_at(now.at - make_interval(secs => %(seconds)s)))
        ORDER BY id DESC OFFSET %(runs_max)s LIMIT 1) AS truncated
FROM (SELECT clock_timestamp() AS at) AS now;
