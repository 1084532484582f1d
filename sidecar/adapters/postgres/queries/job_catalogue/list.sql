-- job_catalogue/list: a page of jobs, newest first, without payload, result and history.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        -- include: all_jobs
    ) AS j
    WHERE cluster_id = %(cluster_id)s AND (%(state)s::text IS NULL OR state = %(state)s)
      AND (%(outcome)s::text IS NULL OR outcome = %(outcome)s)
      AND (%(error_contains)s::text IS NULL OR dead AND position(%(error_contains)s IN error) > 0)
      AND (%(labels)s::jsonb IS NULL
           OR coalesce(labels, (SELECT b.labels FROM baton.job_body b WHERE b.id = j.id)) @> %(labels)s::jsonb)
      -- include: job_matches
    ORDER BY id DESC LIMIT %(limit)s
)
-- include: job_columns
    , NULL::bytea AS payload, NULL::bytea AS result, '[]'::jsonb AS history
-- include: shown_job
