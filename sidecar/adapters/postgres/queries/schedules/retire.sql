-- schedules/retire: stops schedules. Their watermarks are kept; their queued and waiting runs end as skipped.
-- Many in one statement: the caller has locked them, and ticks wait until it has done with the last one.
-- ORDER BY run.id: a completion locks several runs in the same order, and may hold some that were claimed meanwhile.
WITH item AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::bigint[], %(watermarks)s::timestamptz[]) AS i (id, watermark)
), gone AS (
    UPDATE baton.schedule SET retired_at = clock_timestamp(), next_tick = NULL, next_due_at = NULL,
        watermark = item.watermark, version = version + 1, changed_at = clock_timestamp()
    FROM item WHERE schedule.id = item.id AND schedule.id = ANY (%(ids)s::bigint[]) AND retired_at IS NULL
    RETURNING schedule.id
), idle AS MATERIALIZED (
    SELECT run.id FROM baton.run
    WHERE run.schedule_id = ANY (ARRAY (SELECT id FROM gone)) AND run.state IN ('queued', 'waiting')
    ORDER BY run.id FOR UPDATE
)
UPDATE baton.run SET state = 'ended', outcome = 'skipped', reason = 'operator', finished_at = clock_timestamp(),
    history = baton.run_event(history, 'ended', 'skipped', attempt, 0, %(runner_id)s, 'schedule retired')
WHERE id = ANY (ARRAY (SELECT id FROM idle));
