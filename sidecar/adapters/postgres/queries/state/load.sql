-- state/load: the owned entry to start from: of the declared state_version, else of the newest one below it.
-- A tombstone counts: deleted or expired state is not replaced by the state of an older version.
SELECT s.state_version, s.version,
       CASE WHEN s.expires_at <= clock_timestamp() THEN NULL ELSE s.value END AS value
FROM baton.state s
WHERE s.cluster_id = %(cluster_id)s AND s.key = %(key)s AND s.state_version BETWEEN 1 AND %(state_version)s
ORDER BY s.state_version DESC LIMIT 1
