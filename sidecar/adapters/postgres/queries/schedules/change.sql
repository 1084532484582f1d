-- schedules/change: writes a schedule that this transaction has locked. Its queued and waiting runs move to its new group:
-- the old one may have no leader. A run that the old leader is claiming stays there: this statement waits for the claim
-- and then finds the run running; the other way round the claim skips the row.
-- A changed overlap policy applies to those runs too.
-- ORDER BY run.id: a completion locks several runs in the same order, and may hold some that were claimed meanwhile.
WITH changed AS (
    UPDATE baton.schedule SET
        group_id = %(group_id)s, source = %(source)s, definition = %(definition)s, payload = %(payload)s,
        paused = %(paused)s, pause_note = %(pause_note)s, watermark = %(watermark)s, next_tick = %(next_tick)s,
        next_due_at = %(next_due_at)s, version = version + 1, changed_at = clock_timestamp(),
        counted_from = CASE WHEN %(recount)s THEN clock_timestamp() ELSE counted_from END, retired_at = NULL
    WHERE id = %(id)s
    RETURNING id, group_id, coalesce(definition ->> 'overlap', 'allow') AS overlap
), idle AS MATERIALIZED (
    SELECT run.id FROM baton.run JOIN changed ON run.schedule_id = changed.id
    WHERE run.state IN ('queued', 'waiting') AND (run.group_id <> changed.group_id OR run.overlap <> changed.overlap)
    ORDER BY run.id FOR UPDATE OF run
)
UPDATE baton.run SET group_id = changed.group_id, overlap = changed.overlap
FROM changed WHERE run.id = ANY (ARRAY (SELECT id FROM idle));
