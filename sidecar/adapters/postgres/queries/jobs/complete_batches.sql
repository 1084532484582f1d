-- jobs/complete_batches: closed batches whose jobs have all ended: marks them complete and submits what they wait for.
WITH fence AS MATERIALIZED (
    -- include: fence
), done AS MATERIALIZED (
    SELECT b.cluster_id, b.batch, b.on_complete FROM baton.job_batch AS b
    WHERE b.cluster_id = %(cluster_id)s AND b.closed AND b.completed_at IS NULL AND EXISTS (SELECT FROM fence)
      AND (SELECT coalesce(sum(total), 0) <= coalesce(sum(succeeded + failed + skipped), 0) FROM baton.job_batch_count AS c
           WHERE c.cluster_id = b.cluster_id AND c.batch = b.batch)
    FOR UPDATE SKIP LOCKED
), completed AS (
    UPDATE baton.job_batch AS b SET completed_at = clock_timestamp(), completion_job_id = CASE
    WHEN b.on_complete IS NOT NULL THEN (
        SELECT s.job_id FROM baton.submit_jobs(b.cluster_id, ARRAY[jsonb_populate_record(NULL::baton.job_spec, b.on_complete)],
                                               false) AS s) END
    FROM done WHERE b.cluster_id = done.cluster_id AND b.batch = done.batch
    RETURNING b.batch
)
SELECT EXISTS (SELECT FROM fence) AS is_current, (SELECT count(*) FROM completed) AS count;
