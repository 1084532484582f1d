-- state/delete: deletes an entry that nobody owns; a version of NULL if there is none, or if it has another version.
-- That answer waits for replication: an earlier attempt of the same caller may have deleted the entry.
WITH item AS NOT MATERIALIZED (
    SELECT %(key)s::text AS key, 0 AS state_version, %(expected)s::bigint AS expected
), gone AS (
    -- include: delete_state
)
SELECT g.version, g.updated_at, statement_timestamp() AS as_of,
       CASE WHEN g.version IS NULL THEN baton.await_replication_at_commit() END AS awaited
FROM (VALUES (1)) AS always (one) LEFT JOIN gone g ON true
