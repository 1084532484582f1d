-- heartbeats/beat: writes the heartbeats that are due in one group, under its term.
-- SKIP LOCKED: a row that a completion has locked is written next time, seconds later; waiting for it, in another order
-- than the completion's, could deadlock.
-- The expected interval of a singleton is stored with its heartbeat, and since when; a schedule has it in its definition.
WITH fence AS MATERIALIZED (
    -- include: fence
),
led AS MATERIALIZED (
    SELECT 'singleton' AS entity_type, name, expected_seconds
    FROM unnest(%(singletons)s::text[], %(expected)s::float8[]) AS singleton (name, expected_seconds)
    UNION ALL
    SELECT 'schedule', name, NULL FROM baton.schedule
    WHERE group_id = %(group_id)s AND retired_at IS NULL),
due AS MATERIALIZED (
    -- = ANY (ARRAY …): by primary key, whatever the planner believes. A join on tables without statistics compares
    -- ten thousand schedules each with each, and completions wait for their rows meanwhile.
    SELECT e.entity_type, e.name FROM baton.execution AS e
    WHERE e.cluster_id = %(cluster_id)s AND EXISTS (SELECT FROM fence)
      AND (e.entity_type = 'singleton' AND e.name = ANY (%(singletons)s::text[])
           OR e.entity_type = 'schedule' AND e.name = ANY (ARRAY (SELECT name FROM led WHERE entity_type = 'schedule')))
      -- A heartbeat in the future: the server's clock stepped back.
      AND (e.heartbeat_at BETWEEN clock_timestamp() - make_interval(secs => %(older_than_seconds)s)
           AND clock_timestamp()) IS NOT TRUE
    FOR UPDATE OF e SKIP LOCKED),
written AS (
    UPDATE baton.execution AS e SET heartbeat_at = clock_timestamp(), (expected_seconds, expected_since) = (
        SELECT now.seconds, CASE WHEN now.seconds = e.expected_seconds THEN e.expected_since
                                 WHEN now.seconds IS NOT NULL THEN clock_timestamp() END
        FROM (SELECT (%(expected)s::float8[])[array_position(%(singletons)s::text[], e.name)] AS seconds
              WHERE e.entity_type = 'singleton') AS now)
    WHERE e.cluster_id = %(cluster_id)s AND (e.entity_type, e.name) IN (SELECT entity_type, name FROM due)),
first_ones AS (
    INSERT INTO baton.execution (cluster_id, entity_type, name, heartbeat_at, expected_seconds, expected_since)
    SELECT %(cluster_id)s, entity_type, name, clock_timestamp(), expected_seconds,
           CASE WHEN expected_seconds IS NOT NULL THEN clock_timestamp() END
    FROM led
    WHERE EXISTS (SELECT FROM fence) AND NOT EXISTS (
        SELECT FROM baton.execution AS e WHERE e.cluster_id = %(cluster_id)s
        AND e.entity_type = led.entity_type AND e.name = led.name)
    ORDER BY entity_type, name
    ON CONFLICT DO NOTHING)
SELECT EXISTS (SELECT FROM fence) AS is_current;
