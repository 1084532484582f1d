-- runs/contended: due runs of schedules whose runs must not overlap, and the other live runs of each schedule. A few per
-- schedule are enough to decide; the rest is read when these have started. `overdue`: too old to start.
SELECT id, schedule_id, overlap, state, backfill, busy_ids, waiting_ids, backfill_ids,
    may_misfire AND due_at < (
        SELECT clock_timestamp() -
            -- include: misfire_after
        FROM baton.schedule WHERE schedule.id = due.schedule_id) IS TRUE AS overdue
FROM (
    SELECT run.id, run.schedule_id, run.overlap, run.state, run.backfill, run.due_at,
        -- include: may_misfire
        AS may_misfire,
        row_number() OVER (PARTITION BY run.schedule_id, run.backfill ORDER BY run.due_at, run.id) AS place
    FROM baton.run
    WHERE group_id = %(group_id)s AND state IN ('queued', 'waiting') AND overlap <> 'allow'
      AND due_at <= (SELECT clock_timestamp())
) AS due
CROSS JOIN LATERAL (
    SELECT array_agg(other.id) FILTER (WHERE other.state = 'running') AS busy_ids,
        array_agg(other.id) FILTER (WHERE other.state = 'waiting') AS waiting_ids,
        array_agg(other.id) FILTER (WHERE other.backfill) AS backfill_ids
    FROM baton.run AS other
    WHERE other.schedule_id = due.schedule_id AND other.state IN ('running', 'waiting') AND other.id <> due.id
) AS others
WHERE place <= %(per_schedule)s
ORDER BY due_at, id;
