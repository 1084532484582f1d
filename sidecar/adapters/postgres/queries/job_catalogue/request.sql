-- job_catalogue/request: what the first call with this request_id stored, once that is replicated.
SELECT digest, job_ids, duplicates, requested_at > clock_timestamp() - interval '1 day' AS recent,
    baton.await_replication_at_commit() AS awaited
FROM baton.job_request WHERE cluster_id = %(cluster_id)s AND request_id = %(request_id)s
