-- reports/steps: the stored steps of a run, without their values.
SELECT step, stored_at, attempt, octet_length(value) AS size FROM baton.checkpoint
WHERE run_id = %(run_id)s ORDER BY seq;
