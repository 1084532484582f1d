-- runs/checkpoint: stores a step's result for the live attempt. The run's row is locked: it counts its checkpoints, and a
-- completion comes before or after. If the step is stored already, its value is returned and nothing changes.
WITH ref AS NOT MATERIALIZED (
    SELECT %(run_id)s::bigint AS run_id, %(attempt)s::bigint AS attempt
), fence AS MATERIALIZED (
    -- include: fence_of_run
), live AS MATERIALIZED (
    SELECT run.id, run.checkpoint_count, run.checkpoint_bytes FROM baton.run JOIN ref ON
        -- include: live_run
    WHERE run.group_id = (SELECT group_id FROM fence)
    FOR NO KEY UPDATE OF run
), found AS MATERIALIZED (
    SELECT value FROM baton.checkpoint WHERE run_id = (SELECT id FROM live) AND step = %(step)s
), fitting AS MATERIALIZED (
    SELECT live.* FROM live
    WHERE NOT EXISTS (SELECT FROM found)
      AND checkpoint_count < %(count_max)s AND checkpoint_bytes + octet_length(%(value)s::bytea) <= %(bytes_max)s
), stored AS (
    INSERT INTO baton.checkpoint (run_id, seq, step, value, attempt)
    SELECT id, checkpoint_count + 1, %(step)s, %(value)s, %(attempt)s FROM fitting
    RETURNING run_id
), counted AS (
    UPDATE baton.run SET checkpoint_count = run.checkpoint_count + 1,
        checkpoint_bytes = run.checkpoint_bytes + octet_length(%(value)s::bytea)
    FROM stored WHERE run.id = stored.run_id
)
SELECT EXISTS (SELECT FROM live) AS is_current, EXISTS (SELECT FROM stored) AS stored,
    (SELECT value FROM found) AS existing;
