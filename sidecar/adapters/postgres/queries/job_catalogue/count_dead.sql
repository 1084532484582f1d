-- job_catalogue/count_dead: how many dead letters match, at most `limit`.
SELECT count(*) AS count FROM (
    SELECT FROM baton.job_dead j WHERE cluster_id = %(cluster_id)s
    -- include: dead_matches
    LIMIT %(limit)s) AS found
