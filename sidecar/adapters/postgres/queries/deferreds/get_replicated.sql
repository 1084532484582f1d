-- deferreds/get_replicated: deferreds/get_one for a caller that wanted to end the deferred and found it ended. Returns
-- once that end is replicated.
SELECT d.id, d.name, d.run_id, d.state, d.value, d.error, d.created_at, d.finished_at, d.expires_at,
       extract(epoch FROM d.expires_at - clock_timestamp())::float8 AS expires_in_seconds,
       baton.await_replication_at_commit() AS awaited
FROM baton.deferred d
WHERE d.id = %(id)s AND d.cluster_id = %(cluster_id)s
