-- job_catalogue/get: one job with payload, result and history.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        -- include: all_jobs
    ) AS j WHERE id = %(job_id)s AND cluster_id = %(cluster_id)s
)
-- include: job_columns
    , coalesce(j.payload, b.payload, '') AS payload, j.result, coalesce(j.history, '[]') AS history
-- include: shown_job
