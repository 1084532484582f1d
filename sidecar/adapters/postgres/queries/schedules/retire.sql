-- schedules/retire: stops a schedule. Its watermark is kept; its queued and waiting runs end as skipped.
-- ORDER BY run.id: a completion locks several runs in the same order, and may hold some that were claimed meanwhile.
WITH gone AS (
    UPDATE baton.schedule SET retired_at = clock_timestamp(), next_tick = NULL, next_due_at = NULL,
        watermark = %(watermark)s, version = version + 1, changed_at = clock_timestamp()
    WHERE id = %(id)s AND retired_at IS NULL
    RETURNING id
), idle AS MATERIALIZED (
    SELECT run.id FROM baton.run JOIN gone ON run.schedule_id = gone.id
    WHERE run.state IN ('queued', 'waiting')
    ORDER BY run.id FOR UPDATE OF run
)
UPDATE baton.run SET state = 'ended', outcome = 'skipped', reason = 'operator', finished_at = clock_timestamp(),
    history = baton.run_event(history, 'ended', 'skipped', attempt, 0, %(runner_id)s, 'schedule retired')
WHERE id = ANY (ARRAY (SELECT id FROM idle));
