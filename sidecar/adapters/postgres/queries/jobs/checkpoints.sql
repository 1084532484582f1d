-- jobs/checkpoints: the steps that earlier attempts stored, in order.
SELECT job_id AS run_id, step, value FROM baton.job_checkpoint
WHERE job_id = ANY (%(run_ids)s::bigint[]) ORDER BY job_id, seq;
