-- runs/heartbeat: a sign of life of the live attempt. Progress and message that are not given stay as they were.
WITH ref AS NOT MATERIALIZED (
    SELECT %(run_id)s::bigint AS run_id, %(attempt)s::bigint AS attempt
), fence AS MATERIALIZED (
    -- include: fence_of_run
), live AS MATERIALIZED (
    SELECT run.id FROM baton.run JOIN ref ON
        -- include: live_run
    WHERE run.group_id = (SELECT group_id FROM fence)
    FOR NO KEY UPDATE OF run
), changed AS (
    UPDATE baton.run SET heartbeat_at = clock_timestamp(), progress = coalesce(%(progress)s, progress),
        progress_message = coalesce(%(message)s, progress_message)
    FROM live WHERE run.id = live.id
    RETURNING run.kind, run.name
)
SELECT kind, name FROM changed;
