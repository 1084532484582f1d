-- executions: the signs of life of some schedules. Not joined to the schedules here: on tables without
-- statistics the planner joins them by a loop that takes longer than we may wait.
SELECT name, heartbeat_at, last_run_at, last_success_at FROM baton.execution
WHERE cluster_id = %(cluster_id)s AND entity_type = 'schedule' AND name = ANY (%(names)s::text[]);
