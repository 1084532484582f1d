-- schedules/trigger_all: schedules/trigger for many requests, in the order in which they came.
-- SKIP LOCKED: a schedule that another session has locked holds up no other; its requests are `locked`.
WITH item AS MATERIALIZED (
    SELECT baton.next_run_id() AS run_id, i.*
    FROM unnest(%(names)s::text[], %(payloads)s::bytea[], %(request_ids)s::text[]) WITH ORDINALITY
         AS i (name, payload, request_id, place)
), known AS MATERIALIZED (
    SELECT name FROM baton.schedule
    WHERE cluster_id = %(cluster_id)s AND name = ANY (%(names)s::text[]) AND retired_at IS NULL
), target AS MATERIALIZED (
    SELECT id, group_id, name, coalesce(definition ->> 'overlap', 'allow') AS overlap FROM baton.schedule
    WHERE cluster_id = %(cluster_id)s AND name = ANY (%(names)s::text[]) AND retired_at IS NULL
    ORDER BY id FOR SHARE SKIP LOCKED
), room AS MATERIALIZED (
    SELECT group_id,
        -- include: triggers_full
        AS is_full
    FROM (SELECT DISTINCT group_id FROM target) AS target
), born AS (
    INSERT INTO baton.run (id, cluster_id, group_id, kind, name, schedule_id, tick, request_id, overlap, state, due_at,
        payload, history)
    SELECT item.run_id, %(cluster_id)s, target.group_id, 'trigger', item.name, target.id, clock_timestamp(),
        item.request_id, target.overlap, 'queued', clock_timestamp(), item.payload,
        baton.run_event('[]', 'queued', NULL, 0, 0, %(runner_id)s, 'triggered')
    FROM item JOIN target ON target.name = item.name JOIN room ON room.group_id = target.group_id
    WHERE NOT room.is_full
    ORDER BY item.place
    ON CONFLICT (cluster_id, name, request_id) WHERE request_id IS NOT NULL DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT FROM known WHERE known.name = item.name) AS known, target.id IS NULL AS locked, room.is_full,
    (SELECT id FROM born WHERE born.id = item.run_id) AS id
FROM item LEFT JOIN target ON target.name = item.name LEFT JOIN room ON room.group_id = target.group_id
ORDER BY item.place;
