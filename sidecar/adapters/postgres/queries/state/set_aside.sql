-- state/set_aside: keeps a value that the declared schema could not decode, once per version.
INSERT INTO baton.state_set_aside (cluster_id, key, state_version, version, value, problem)
VALUES (%(cluster_id)s, %(key)s, %(state_version)s, %(version)s, %(value)s, %(problem)s)
ON CONFLICT (cluster_id, key, state_version, version) DO NOTHING
