-- job_catalogue/close_batch: no more jobs of the batch will come. Returns no row if it was closed before. The job to submit at the
-- end is kept as a baton.job_spec in JSON, with the delay that counts from then.
WITH given AS (
    -- include: given_jobs
)
INSERT INTO baton.job_batch (cluster_id, batch, closed, on_complete)
SELECT %(cluster_id)s, %(batch)s, true,
    (SELECT to_jsonb(spec) || jsonb_build_object('due_at', (%(dues)s::timestamptz[])[1],
                                                 'delay', (%(delays)s::float8[])[1]) FROM given)
ON CONFLICT (cluster_id, batch) DO UPDATE
SET closed = true, on_complete = excluded.on_complete, changed_at = clock_timestamp() WHERE NOT job_batch.closed
RETURNING batch
