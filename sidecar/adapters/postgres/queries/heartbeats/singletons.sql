-- heartbeats/singletons: heartbeats and last runs of some singletons. Each Runs.Heartbeat of a run counts as a success.
-- A singleton that never succeeded is counted from its oldest run on record: a new leader, whose call into the app is
-- fresh, must not hide that. Only a change of the expected interval starts the count again.
SELECT wanted.name, e.heartbeat_at, greatest(e.last_run_at, lives.started_at) AS last_run_at,
       greatest(e.last_success_at, lives.heartbeat_at) AS last_success_at, oldest.created_at,
       e.expected_seconds, e.expected_since
FROM unnest(%(names)s::text[]) AS wanted (name)
LEFT JOIN baton.execution AS e
    ON e.cluster_id = %(cluster_id)s AND e.entity_type = 'singleton' AND e.name = wanted.name
LEFT JOIN LATERAL (
    SELECT max(heartbeat_at) AS heartbeat_at, max(attempt_started_at) AS started_at FROM (
        SELECT heartbeat_at, attempt_started_at FROM baton.run
        WHERE cluster_id = %(cluster_id)s AND name = wanted.name AND kind = 'singleton'
        ORDER BY id DESC LIMIT 50) AS newest) AS lives ON true
LEFT JOIN LATERAL (
    SELECT created_at FROM baton.run
    WHERE cluster_id = %(cluster_id)s AND name = wanted.name AND kind = 'singleton'
    ORDER BY id LIMIT 1) AS oldest ON true;
