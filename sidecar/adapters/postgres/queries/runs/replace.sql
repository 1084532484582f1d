-- runs/replace: requests the end of runs that a newer run replaces; their executor sees the flag.
-- ORDER BY id: a completion locks several runs in the same order.
WITH fence AS MATERIALIZED (
    -- include: fence
), busy AS MATERIALIZED (
    SELECT id FROM baton.run
    WHERE id = ANY (%(run_ids)s::bigint[]) AND group_id = %(group_id)s AND state = 'running'
      AND cancel_reason IS NULL AND EXISTS (SELECT FROM fence)
    ORDER BY id FOR UPDATE
), changed AS (
    UPDATE baton.run SET cancel_reason = 'overlap', cancel_note = 'replaced by a newer run'
    WHERE id = ANY (ARRAY (SELECT id FROM busy))
)
SELECT EXISTS (SELECT FROM fence) AS is_current;
