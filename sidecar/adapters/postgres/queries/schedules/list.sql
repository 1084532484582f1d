-- schedules/list: a page of schedules by name, with their last results.
SELECT schedule.*, leader_group.name AS group_name, execution.last_success_at, execution.run_count,
    execution.last_error, execution.average_seconds, execution.last_seconds, execution.heartbeat_at,
    schedule.missed_total - coalesce(execution.missed_seen, 0) AS missed_count,
    greatest(execution.last_run_at, (
        SELECT max(started_at) FROM baton.run WHERE run.schedule_id = schedule.id AND run.state <> 'ended'
    )) AS last_run_at, clock_timestamp() AS now
FROM baton.schedule
JOIN baton.leader_group ON leader_group.id = schedule.group_id
LEFT JOIN baton.execution ON execution.cluster_id = schedule.cluster_id
    AND execution.entity_type = 'schedule' AND execution.name = schedule.name
WHERE schedule.cluster_id = %(cluster_id)s AND schedule.name > %(after)s
  AND (%(include_retired)s OR schedule.retired_at IS NULL)
  AND starts_with(schedule.name, %(name_prefix)s)
  AND (%(paused)s::boolean IS NULL OR schedule.paused = %(paused)s)
ORDER BY schedule.name LIMIT %(limit)s;
