-- job_catalogue/forget_request: a request_id may be used again after a day.
DELETE FROM baton.job_request
WHERE cluster_id = %(cluster_id)s AND request_id = %(request_id)s AND requested_at <= clock_timestamp() - interval '1 day'
