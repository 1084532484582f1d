-- heartbeats/executions: heartbeats and last runs of some schedules. Not joined to the schedules: on tables without
-- statistics the planner uses a nested loop that exceeds the time limit.
SELECT name, heartbeat_at, last_run_at, last_success_at FROM baton.execution
WHERE cluster_id = %(cluster_id)s AND entity_type = 'schedule' AND name = ANY (%(names)s::text[]);
