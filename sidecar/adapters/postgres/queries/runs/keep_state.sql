-- The state returned with an answer, in the transaction that completes its run.
SELECT baton.put_owned_state(%(cluster_id)s, %(key)s, %(value)s, %(state_version)s, %(ttl)s::interval) AS version;
