-- state/list: a page of live entries in byte order; it ends early rather than exceed `bytes_max`.
-- Of an owned key the newest state_version is returned.
SELECT key, version, value, updated_at, expires_at, candidates
FROM (
    SELECT p.key, p.version, p.value, p.updated_at, p.expires_at, count(*) OVER () AS candidates,
           sum(octet_length(p.value) + octet_length(p.key) + 64)
               OVER (ORDER BY p.key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT s.key, s.version, s.value, s.updated_at, s.expires_at
        FROM baton.state s
        WHERE s.cluster_id = %(cluster_id)s AND s.key > %(after)s
          AND s.key >= %(prefix)s AND s.key < %(prefix_end)s
          AND s.value IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp())
          AND (s.state_version = 0 OR NOT EXISTS (
                  SELECT 1 FROM baton.state n
                  WHERE n.cluster_id = s.cluster_id AND n.key = s.key AND n.state_version > s.state_version))
        ORDER BY s.key LIMIT %(limit)s
    ) p
) q
WHERE coalesce(bytes_before, 0) <= %(bytes_max)s
ORDER BY key
