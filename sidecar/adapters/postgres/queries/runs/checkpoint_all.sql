-- Store a step's result for each of several runs, where nothing stands in its way; what is not returned was not
-- stored, and is asked for again alone. Of one group: that of the first run which says that it is of this epoch.
-- SKIP LOCKED: no run waits for another's, and nobody waits in a circle.
WITH fence AS MATERIALIZED (
    SELECT group_id FROM baton.term
    WHERE group_id = (SELECT group_id FROM baton.run
                      WHERE id = ANY (%(run_ids)s::bigint[]) AND cluster_id = %(cluster_id)s AND epoch = %(epoch)s
                      ORDER BY id LIMIT 1)
      AND epoch = %(epoch)s
    FOR SHARE
), live AS MATERIALIZED (
    SELECT id, attempt, checkpoint_count, checkpoint_bytes FROM baton.run
    WHERE id = ANY (%(run_ids)s::bigint[]) AND cluster_id = %(cluster_id)s AND state = 'running'
      AND epoch = %(epoch)s AND group_id = (SELECT group_id FROM fence)
    FOR NO KEY UPDATE SKIP LOCKED
), stored AS (
    -- A step that is there stays as it is, also one that this statement does not see yet.
    INSERT INTO baton.checkpoint (run_id, seq, step, value)
    SELECT live.id, live.checkpoint_count + 1, item.step, item.value
    FROM unnest(%(run_ids)s::bigint[], %(attempts)s::integer[], %(steps)s::text[], %(values)s::bytea[])
         AS item (run_id, attempt, step, value)
    JOIN live ON live.id = item.run_id AND live.attempt = item.attempt
    WHERE checkpoint_count < %(count_max)s AND checkpoint_bytes + octet_length(item.value) <= %(bytes_max)s
    ON CONFLICT (run_id, step) DO NOTHING
    RETURNING run_id, octet_length(value) AS bytes
), counted AS (
    UPDATE baton.run SET checkpoint_count = run.checkpoint_count + 1,
        checkpoint_bytes = run.checkpoint_bytes + stored.bytes
    FROM stored WHERE run.id = stored.run_id AND run.id = ANY (%(run_ids)s::bigint[])
)
SELECT run_id FROM stored;
