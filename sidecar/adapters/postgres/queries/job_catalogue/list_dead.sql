-- job_catalogue/list_dead: a page of dead letters, newest first, without payload and history.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        -- include: dead_jobs
    ) AS j
    WHERE cluster_id = %(cluster_id)s
    -- include: dead_matches
    ORDER BY id DESC LIMIT %(limit)s
)
-- include: job_columns
    , NULL::bytea AS payload, NULL::bytea AS result, '[]'::jsonb AS history
-- include: shown_job
