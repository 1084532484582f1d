-- Ask for the end of runs that a newer one takes the place of; whoever executes them sees the flag.
-- ORDER BY id: a completion locks several runs in this order too.
WITH fence AS MATERIALIZED (
    SELECT 1 FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
), busy AS MATERIALIZED (
    SELECT id FROM baton.run
    WHERE id = ANY (%(run_ids)s::bigint[]) AND group_id = %(group_id)s AND state = 'running'
      AND cancel_reason IS NULL AND EXISTS (SELECT FROM fence)
    ORDER BY id FOR UPDATE
), changed AS (
    UPDATE baton.run SET cancel_reason = 'overlap', cancel_note = 'replaced by a newer run'
    WHERE id = ANY (ARRAY (SELECT id FROM busy))
)
SELECT EXISTS (SELECT FROM fence) AS stands;
