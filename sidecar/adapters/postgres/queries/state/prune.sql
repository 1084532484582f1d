-- state/prune: deletes tombstones and answered requests that are old enough.
-- A tombstone of an owned key is kept while an older state_version exists, which would become visible again.
WITH old AS MATERIALIZED (
    SELECT s.key, s.state_version FROM baton.state s
    WHERE s.cluster_id = %(cluster_id)s AND s.value IS NULL
      AND s.updated_at < clock_timestamp() - make_interval(secs => %(tombstone_seconds)s)
      AND NOT EXISTS (SELECT 1 FROM baton.state o
                      WHERE o.cluster_id = s.cluster_id AND o.key = s.key AND o.state_version < s.state_version)
    ORDER BY s.updated_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), tombstones AS (
    DELETE FROM baton.state s USING old o
    WHERE s.cluster_id = %(cluster_id)s AND s.key = o.key AND s.state_version = o.state_version
    RETURNING 1
), answered AS MATERIALIZED (
    SELECT r.key, r.request_id FROM baton.state_request r
    WHERE r.cluster_id = %(cluster_id)s
      AND r.updated_at < clock_timestamp() - make_interval(secs => %(request_seconds)s)
    ORDER BY r.updated_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), requests AS (
    DELETE FROM baton.state_request r USING answered a
    WHERE r.cluster_id = %(cluster_id)s AND r.key = a.key AND r.request_id = a.request_id
    RETURNING 1
)
SELECT (SELECT count(*) FROM tombstones) + (SELECT count(*) FROM requests) AS pruned
