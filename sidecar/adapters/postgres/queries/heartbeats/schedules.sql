-- heartbeats/schedules: all schedules of some groups with their expected intervals. `expected_seconds` is NULL where it
-- has to be computed from a cron expression. The first row always exists: it has the database's time. No cast can fail:
-- one damaged definition must not hide all other schedules.
SELECT clock.now, s.id, s.version, s.name, s.group_id, s.next_tick, s.watermark,
       NOT s.paused AND s.definition -> 'enabled' IS DISTINCT FROM 'false'::jsonb AS watched,
       s.counted_from, s.definition ->> 'start_at' AS start_at,
       CASE WHEN s.next_tick IS NULL OR s.definition ->> 'at' IS NOT NULL THEN 0
            WHEN s.definition @? '$.expected_interval_seconds ? (@ > 0 && @ < 1e9)'
                THEN (s.definition -> 'expected_interval_seconds')::float8
            WHEN s.definition @? '$.every_seconds ? (@ > 0 && @ < 1e9)'
                THEN (s.definition -> 'every_seconds')::float8 END AS expected_seconds
FROM (SELECT clock_timestamp() AS now) AS clock
LEFT JOIN baton.schedule AS s
    ON s.cluster_id = %(cluster_id)s AND s.group_id = ANY (%(group_ids)s::integer[])
    AND s.retired_at IS NULL
LIMIT %(limit)s;
