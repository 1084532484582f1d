-- No more ticks. The watermark stays; what waits ends as skipped.
WITH gone AS (
    UPDATE baton.schedule SET retired_at = clock_timestamp(), next_tick = NULL, next_due_at = NULL,
        watermark = %(watermark)s, version = version + 1, changed_at = clock_timestamp()
    WHERE id = %(id)s AND retired_at IS NULL
    RETURNING id
)
UPDATE baton.run SET state = 'ended', outcome = 'skipped', reason = 'operator', finished_at = clock_timestamp(),
    history = baton.run_event(history, 'ended', 'skipped', attempt, 0, %(runner_id)s, 'schedule retired')
FROM gone WHERE run.schedule_id = gone.id AND run.state IN ('queued', 'waiting');
