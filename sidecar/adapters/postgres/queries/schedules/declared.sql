-- schedules/declared: how many ticks per second the schedules of a group declare: the sum for intervals, and the
-- expressions of crons that may tick within a minute, with their numbers. Other crons are too rare to matter: those of
-- every minute are counted as such, and the rest as nothing. No cast can fail.
SELECT cron, count(*) AS schedules,
    coalesce(sum(CASE WHEN definition @? '$.every_seconds ? (@ > 0 && @ < 1e9)'
                      THEN 1 / (definition -> 'every_seconds')::float8
                      WHEN definition ->> 'cron' ~ '^\s*\*(\s+\S+){4}\s*$' THEN 1 / 60.0 END), 0)::float8 AS ticks_per_second
FROM (
    SELECT definition, CASE WHEN definition ->> 'cron' ~ '^\s*\S+(\s+\S+){5}\s*$' THEN definition ->> 'cron' END AS cron
    FROM baton.schedule JOIN baton.leader_group ON leader_group.id = schedule.group_id
    WHERE schedule.cluster_id = %(cluster_id)s AND leader_group.name = %(group)s AND retired_at IS NULL AND NOT paused
      AND definition -> 'enabled' IS DISTINCT FROM 'false'::jsonb
) AS live
GROUP BY cron;
