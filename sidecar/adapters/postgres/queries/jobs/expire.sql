-- jobs/expire: ends jobs that no worker started before their `expires_at`.
SELECT baton.skip_jobs(%(cluster_id)s, ARRAY (
    SELECT id FROM baton.job
    WHERE cluster_id = %(cluster_id)s AND expires_at <= (SELECT clock_timestamp()) AND attempt = 0 AND state <> 'running'
    ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED), 'expired', 'expired') AS id;
