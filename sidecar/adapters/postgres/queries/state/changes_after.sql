-- state/changes_after: state/changes for a watch that resumes after a version instead of a snapshot.
-- Returns all versions above it, and the slightly lower ones that may have become visible after it: a client that saw the
-- entry of that version has seen every transaction that had ended when it was written. If that entry is gone or not
-- unique, all recent ones are returned (again).
WITH seen AS MATERIALIZED (
    SELECT CASE WHEN count(*) = 1 THEN min(s.xact_horizon::text::numeric) ELSE 0 END AS horizon,
           CASE WHEN count(*) = 1 THEN min(s.key) END AS key
    FROM baton.state s WHERE s.cluster_id = %(cluster_id)s AND s.version = %(resume_version)s
), page AS (
    SELECT s.key, s.version, s.value, s.updated_at, s.expires_at,
           sum(coalesce(octet_length(s.value), 0) + octet_length(s.key) + 64)
               OVER (ORDER BY s.version, s.key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM seen, baton.state s
    WHERE s.cluster_id = %(cluster_id)s AND s.version > %(low)s
      AND (s.version, s.key) > (%(after_version)s, %(after_key)s::text)
      AND s.key >= %(prefix)s AND s.key < %(prefix_end)s
      AND (s.version > %(resume_version)s OR s.xact::text::numeric >= seen.horizon)
      AND s.key IS DISTINCT FROM CASE WHEN s.version = %(resume_version)s THEN seen.key END
      AND pg_visible_in_snapshot(s.xact, %(until)s::pg_snapshot)
      AND (s.state_version = 0 OR NOT EXISTS (
              SELECT 1 FROM baton.state n
              WHERE n.cluster_id = s.cluster_id AND n.key = s.key AND n.state_version > s.state_version))
    ORDER BY s.version, s.key LIMIT %(limit)s
)
SELECT key, version, value, updated_at, expires_at
FROM page WHERE coalesce(bytes_before, 0) <= %(bytes_max)s
ORDER BY version, key
