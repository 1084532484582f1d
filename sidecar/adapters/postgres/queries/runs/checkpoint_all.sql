-- runs/checkpoint_all: stores one step for each of several runs of a group. A run that is not returned was not stored,
-- and the caller tries it alone.
-- SKIP LOCKED: no run waits for another one, so there is no deadlock.
WITH ref AS MATERIALIZED (
    SELECT * FROM unnest(%(run_ids)s::bigint[], %(attempts)s::integer[], %(steps)s::text[], %(values)s::bytea[])
        AS ref (run_id, attempt, step, value)
), fence AS MATERIALIZED (
    -- include: fence_of_run
), live AS MATERIALIZED (
    SELECT run.id, run.checkpoint_count, run.checkpoint_bytes, ref.step, ref.value, ref.attempt FROM baton.run JOIN ref ON
        -- include: live_run
    WHERE run.id = ANY (%(run_ids)s::bigint[]) AND run.group_id = (SELECT group_id FROM fence)
    FOR NO KEY UPDATE OF run SKIP LOCKED
), stored AS (
    -- A stored step is kept, even one that this statement does not see yet.
    INSERT INTO baton.checkpoint (run_id, seq, step, value, attempt)
    SELECT id, checkpoint_count + 1, step, value, attempt FROM live
    WHERE checkpoint_count < %(count_max)s AND checkpoint_bytes + octet_length(value) <= %(bytes_max)s
    ON CONFLICT (run_id, step) DO NOTHING
    RETURNING run_id, octet_length(value) AS bytes
), counted AS (
    UPDATE baton.run SET checkpoint_count = run.checkpoint_count + 1,
        checkpoint_bytes = run.checkpoint_bytes + stored.bytes
    FROM stored WHERE run.id = stored.run_id AND run.id = ANY (%(run_ids)s::bigint[])
)
SELECT run_id FROM stored;
