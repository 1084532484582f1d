-- deferreds/get: the deferreds with these ids. `due`: it has expired, and deferreds/read must record that first.
SELECT d.id, d.name, d.run_id, d.state, d.value, d.error, d.created_at, d.finished_at, d.expires_at,
       extract(epoch FROM d.expires_at - clock_timestamp())::float8 AS expires_in_seconds,
       d.state = 'pending' AND d.expires_at <= clock_timestamp() AS due
FROM baton.deferred d
WHERE d.id = ANY (%(ids)s::bytea[]) AND d.cluster_id = %(cluster_id)s
