-- runs/checkpoints: the steps that earlier attempts stored, in order.
SELECT run_id, step, value FROM baton.checkpoint
WHERE run_id = ANY (%(run_ids)s::bigint[]) ORDER BY run_id, seq;
