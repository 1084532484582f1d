-- deferreds/read: the deferreds with these ids, at most `limit`; only ended ones if `ended_only`.
-- A deferred is expired once that is written, not by the clock alone: a completion that is under way, or a clock that
-- steps back, must not contradict an answer. SKIP LOCKED: a deferred that is being completed still reads as pending, and
-- readers never wait for each other.
WITH due AS MATERIALIZED (
    SELECT d.id FROM baton.deferred d
    WHERE d.id = ANY (%(ids)s::bytea[]) AND d.cluster_id = %(cluster_id)s
      AND d.state = 'pending' AND d.expires_at <= clock_timestamp()
    FOR UPDATE SKIP LOCKED
), expired AS (
    UPDATE baton.deferred d SET state = 'expired', finished_at = d.expires_at
    FROM due WHERE d.id = due.id
    RETURNING d.*
)
SELECT d.id, d.name, d.run_id, d.state, d.value, d.error, d.created_at, d.finished_at, d.expires_at,
       extract(epoch FROM d.expires_at - clock_timestamp())::float8 AS expires_in_seconds
FROM (SELECT * FROM expired
      UNION ALL
      SELECT * FROM baton.deferred
      WHERE id = ANY (%(ids)s::bytea[]) AND cluster_id = %(cluster_id)s
        AND id NOT IN (SELECT id FROM due)
        AND (state <> 'pending' OR NOT %(ended_only)s)) d
LIMIT %(limit)s
