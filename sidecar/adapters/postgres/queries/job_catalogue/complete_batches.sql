-- job_catalogue/complete_batches: completes batches that are closed and whose jobs have all ended, and submits their last job. Of
-- `batches`; NULL: of all. After the commit of whatever ended a job or closed a batch: of two at once, the second sees both.
WITH due AS MATERIALIZED (
    SELECT b.batch, b.on_complete FROM baton.job_batch b
    WHERE b.cluster_id = %(cluster_id)s AND b.closed AND b.completed_at IS NULL
      AND (%(batches)s::text[] IS NULL OR b.batch = ANY (%(batches)s::text[]))
      AND (SELECT coalesce(sum(c.total - c.succeeded - c.failed - c.skipped), 0) FROM baton.job_batch_count c
           WHERE c.cluster_id = b.cluster_id AND c.batch = b.batch) <= 0
    ORDER BY b.batch LIMIT 100 FOR UPDATE OF b SKIP LOCKED
), last AS MATERIALIZED (
    SELECT batch, jsonb_populate_record(NULL::baton.job_spec, on_complete || jsonb_build_object('due_at', greatest(
        clock_timestamp(), coalesce((on_complete ->> 'due_at')::timestamptz,
                                    clock_timestamp() + (on_complete ->> 'delay')::float8 * interval '1 second')))) AS spec
    FROM due WHERE on_complete IS NOT NULL
), submitted AS MATERIALIZED (
    SELECT last.batch, s.job_id FROM last, baton.submit_jobs(%(cluster_id)s::integer, ARRAY[last.spec], false) AS s
)
UPDATE baton.job_batch b SET completed_at = clock_timestamp(), changed_at = clock_timestamp(),
    completion_job_id = (SELECT job_id FROM submitted WHERE submitted.batch = b.batch)
FROM due WHERE b.cluster_id = %(cluster_id)s AND b.batch = due.batch
RETURNING b.batch, b.completion_job_id
