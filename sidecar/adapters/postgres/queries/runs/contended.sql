-- Due runs of schedules whose executions must not overlap, and whether another one is in progress. A few per
-- schedule are enough to decide: the rest is looked at when these have moved on. `overdue`: a tick that grew too
-- old before it was begun; it is no rival any more.
SELECT id, schedule_id, overlap, state, backfill, busy_ids, waiting_ids, backfill_ids,
    may_misfire AND due_at < (
        SELECT clock_timestamp() - make_interval(secs => greatest(0, least(1e10,
            CASE WHEN jsonb_typeof(definition -> 'skip_if_older_than_seconds') = 'number'
                 THEN (definition -> 'skip_if_older_than_seconds')::numeric END,
            CASE WHEN definition ->> 'catch_up' = 'none' THEN %(none_seconds)s::numeric END))::double precision)
        FROM baton.schedule WHERE schedule.id = due.schedule_id) IS TRUE AS overdue
FROM (
    SELECT run.id, run.schedule_id, run.overlap, run.state, run.backfill, run.due_at,
        kind = 'schedule' AND attempt = 0 AND NOT backfill AS may_misfire,
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
