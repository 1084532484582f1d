-- state/changes: changes that became visible after one snapshot and up to another, by version.
-- Commits do not become visible in the order of versions, so the snapshots decide; `version > low` only keeps the scan
-- short: a transaction ends long before `low` passes it. A page ends early rather than exceed `bytes_max`.
WITH page AS (
    SELECT s.key, s.version, s.value, s.updated_at, s.expires_at,
           sum(coalesce(octet_length(s.value), 0) + octet_length(s.key) + 64)
               OVER (ORDER BY s.version, s.key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM baton.state s
    WHERE s.cluster_id = %(cluster_id)s AND s.version > %(low)s
      AND (s.version, s.key) > (%(after_version)s, %(after_key)s::text)
      AND s.key >= %(prefix)s AND s.key < %(prefix_end)s
      AND NOT pg_visible_in_snapshot(s.xact, %(since)s::pg_snapshot)
      AND pg_visible_in_snapshot(s.xact, %(until)s::pg_snapshot)
      AND (s.state_version = 0 OR NOT EXISTS (
              SELECT 1 FROM baton.state n
              WHERE n.cluster_id = s.cluster_id AND n.key = s.key AND n.state_version > s.state_version))
    ORDER BY s.version, s.key LIMIT %(limit)s
)
SELECT key, version, value, updated_at, expires_at
FROM page WHERE coalesce(bytes_before, 0) <= %(bytes_max)s
ORDER BY version, key
