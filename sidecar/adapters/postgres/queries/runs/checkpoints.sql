-- The steps stored by earlier attempts, in the order of storing.
SELECT run_id, step, value FROM baton.checkpoint
WHERE run_id = ANY (%(run_ids)s::bigint[]) ORDER BY run_id, seq;
