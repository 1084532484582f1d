-- state/size: the number of live entries under a prefix.
SELECT count(*) AS size
FROM baton.state s
WHERE s.cluster_id = %(cluster_id)s AND s.key >= %(prefix)s AND s.key < %(prefix_end)s
  AND s.value IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp())
  AND (s.state_version = 0 OR NOT EXISTS (
          SELECT 1 FROM baton.state n
          WHERE n.cluster_id = s.cluster_id AND n.key = s.key AND n.state_version > s.state_version))
