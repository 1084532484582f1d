-- job_catalogue/versions: the live ones of these jobs. Every write changes `version`.
SELECT id, xmin::text AS version FROM baton.job WHERE cluster_id = %(cluster_id)s AND id = ANY (%(ids)s::bigint[])
