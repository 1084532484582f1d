-- Store a step's result for the live attempt. The run's row is locked first: it counts its checkpoints, and a
-- completion waits for this or the other way round. Found already: its value comes back and nothing changes.
WITH live AS MATERIALIZED (
    SELECT id, group_id, checkpoint_count, checkpoint_bytes FROM baton.run
    WHERE id = %(run_id)s AND cluster_id = %(cluster_id)s AND state = 'running'
      AND attempt = %(attempt)s AND epoch = %(epoch)s
    FOR NO KEY UPDATE
), fence AS MATERIALIZED (
    SELECT 1 FROM baton.term
    WHERE group_id = (SELECT group_id FROM live) AND epoch = %(epoch)s FOR SHARE
), found AS MATERIALIZED (
    SELECT value FROM baton.checkpoint WHERE run_id = (SELECT id FROM live) AND step = %(step)s
), fitting AS MATERIALIZED (
    SELECT live.* FROM live
    WHERE EXISTS (SELECT FROM fence) AND NOT EXISTS (SELECT FROM found)
      AND checkpoint_count < %(count_max)s AND checkpoint_bytes + octet_length(%(value)s::bytea) <= %(bytes_max)s
), stored AS (
    INSERT INTO baton.checkpoint (run_id, seq, step, value)
    SELECT id, checkpoint_count + 1, %(step)s, %(value)s FROM fitting
    RETURNING run_id
), counted AS (
    UPDATE baton.run SET checkpoint_count = run.checkpoint_count + 1,
        checkpoint_bytes = run.checkpoint_bytes + octet_length(%(value)s::bytea)
    FROM stored WHERE run.id = stored.run_id
)
SELECT EXISTS (SELECT FROM fence) AS stands, EXISTS (SELECT FROM stored) AS stored,
    (SELECT value FROM found) AS existing;
