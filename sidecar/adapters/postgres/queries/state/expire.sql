-- state/expire: deletes expired entries, oldest first.
-- SKIP LOCKED: sweepers of several pods and writers never wait for each other.
WITH expired AS MATERIALIZED (
    SELECT s.key, s.state_version FROM baton.state s
    WHERE s.cluster_id = %(cluster_id)s AND s.expires_at <= clock_timestamp()
    ORDER BY s.expires_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE baton.state s
SET
    -- include: tombstone
FROM expired e
WHERE s.cluster_id = %(cluster_id)s AND s.key = e.key AND s.state_version = e.state_version
RETURNING s.key
