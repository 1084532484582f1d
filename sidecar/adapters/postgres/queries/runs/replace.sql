-- Ask for the end of runs that a newer one takes the place of; whoever executes them sees the flag.
WITH fence AS MATERIALIZED (
    SELECT 1 FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
), changed AS (
    UPDATE baton.run SET cancel_reason = 'overlap', cancel_note = 'replaced by a newer run'
    WHERE id = ANY (%(run_ids)s::bigint[]) AND group_id = %(group_id)s AND state = 'running'
      AND cancel_reason IS NULL AND EXISTS (SELECT FROM fence)
)
SELECT EXISTS (SELECT FROM fence) AS stands;
