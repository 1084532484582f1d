-- schedules/trigger: creates one run now. A repeated request finds its run (schedules/triggered). Locking the schedule
-- writes WAL, so a repeated request waits for the standby too.
WITH target AS (
    SELECT id, group_id, coalesce(definition ->> 'overlap', 'allow') AS overlap FROM baton.schedule
    WHERE cluster_id = %(cluster_id)s AND name = %(name)s AND retired_at IS NULL
    FOR SHARE
), born AS (
    INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, request_id, overlap, state, due_at,
        payload, history)
    SELECT %(cluster_id)s, group_id, 'trigger', %(name)s, id, clock_timestamp(), %(request_id)s, overlap, 'queued',
        clock_timestamp(), %(payload)s, baton.run_event('[]', 'queued', NULL, 0, 0, %(runner_id)s, 'triggered')
    FROM target
    ON CONFLICT (cluster_id, name, request_id) WHERE request_id IS NOT NULL DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT FROM target) AS known, (SELECT id FROM born) AS id;
