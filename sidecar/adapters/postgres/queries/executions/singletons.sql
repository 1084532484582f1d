-- executions/singletons: the last results of these singletons.
SELECT name, last_run_at, last_success_at, run_count, last_error, 0 AS missed_count,
       average_seconds, last_seconds, heartbeat_at
FROM baton.execution
WHERE cluster_id = %(cluster_id)s AND entity_type = 'singleton' AND name = ANY(%(names)s);
