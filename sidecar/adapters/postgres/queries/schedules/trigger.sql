-- schedules/trigger: creates one run now. A repeated request finds its run (schedules/triggered). Locking the schedule
-- writes WAL, so a repeated request waits for the standby too. `is_full`: too many wait, and none was created.
WITH target AS (
    SELECT id, group_id, coalesce(definition ->> 'overlap', 'allow') AS overlap FROM baton.schedule
    WHERE cluster_id = %(cluster_id)s AND name = %(name)s AND retired_at IS NULL
    FOR SHARE
), room AS MATERIALIZED (
    SELECT
        -- include: triggers_full
        AS is_full
    FROM target
), born AS (
    INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, request_id, overlap, state, due_at,
        payload, history)
    SELECT %(cluster_id)s, group_id, 'trigger', %(name)s, id, clock_timestamp(), %(request_id)s, overlap, 'queued',
        clock_timestamp(), %(payload)s, baton.run_event('[]', 'queued', NULL, 0, 0, %(runner_id)s, 'triggered')
    FROM target, room WHERE NOT is_full
    ON CONFLICT (cluster_id, name, request_id) WHERE request_id IS NOT NULL DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT FROM target) AS known, (SELECT is_full FROM room) AS is_full, (SELECT id FROM born) AS id;
