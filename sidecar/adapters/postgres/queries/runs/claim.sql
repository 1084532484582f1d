-- runs/claim: starts the oldest due runs of a group: those that may overlap, and those in `admitted`.
-- The first row always exists: whether the term is current, the time, and when the next run is due.
-- (SELECT now …): a sub-select is evaluated once and can bound the index scan. = ANY (ARRAY …): by primary key, whatever
-- the planner believes; a join may become a scan of the whole history.
-- A tick that is too old is not started: `overdue` tells the caller to run runs/expire, which ends it.
WITH fence AS MATERIALIZED (
    -- include: fence
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), due AS MATERIALIZED (
    SELECT id, due_at, schedule_id,
        -- include: may_misfire
        AS may_misfire
    FROM baton.run
    WHERE group_id = %(group_id)s AND state IN ('queued', 'waiting')
      AND due_at <= (SELECT now FROM clock)
      AND (overlap = 'allow' OR id = ANY (%(admitted)s::bigint[]))
      AND EXISTS (SELECT FROM fence)
    ORDER BY due_at, id LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
    -- Only the selected runs are checked, by key: the rest of the backlog costs nothing.
    SELECT id, may_misfire AND due_at < (
        SELECT (SELECT now FROM clock) -
            -- include: misfire_after
        FROM baton.schedule WHERE schedule.id = due.schedule_id) IS TRUE AS overdue
    FROM due
), claimed AS (
    UPDATE baton.run SET
        state = 'running', attempt = greatest(0, least(run.attempt, 2147483646)) + 1, epoch = %(epoch)s, runner_id = %(runner_id)s,
        started_at = coalesce(run.started_at, clock_timestamp()), attempt_started_at = clock_timestamp(),
        history = baton.run_event(run.history, 'running', NULL, greatest(0, least(run.attempt, 2147483646)) + 1, %(epoch)s, %(runner_id)s, 'delivered')
    WHERE run.id = ANY (ARRAY (SELECT id FROM judged WHERE NOT overdue))
    RETURNING run.*
), head AS (
    SELECT EXISTS (SELECT FROM fence) AS is_current, (SELECT now FROM clock) AS now,
        (SELECT min(due_at) FROM baton.run
         WHERE group_id = %(group_id)s AND state IN ('queued', 'waiting') AND due_at > (SELECT now FROM clock)
        ) AS next_due_at,
        EXISTS (SELECT FROM baton.run
                WHERE group_id = %(group_id)s AND state IN ('queued', 'waiting')
                  AND due_at <= (SELECT now FROM clock) AND overlap <> 'allow'
                  AND id <> ALL (%(admitted)s::bigint[])) AS contended,
        EXISTS (SELECT FROM judged WHERE overdue) AS overdue
)
SELECT head.is_current, head.now, head.next_due_at, head.contended, head.overdue,
    claimed.id, claimed.kind, claimed.name, claimed.tick, claimed.attempt, claimed.failures, claimed.attempts_free,
    claimed.overlap, coalesce(claimed.payload, schedule.payload) AS payload,
    extract(epoch FROM (SELECT now FROM clock) - claimed.queued_at)::double precision AS queued_seconds,
    extract(epoch FROM claimed.attempt_started_at - claimed.due_at)::double precision AS late_seconds,
    schedule.definition::text,
    execution.last_run_at, execution.last_success_at, execution.run_count, execution.last_error,
    schedule.missed_total, schedule.missed_total - coalesce(execution.missed_seen, 0) AS missed_count,
    execution.average_seconds, execution.last_seconds,
    EXISTS (SELECT FROM baton.state
            WHERE state.cluster_id = claimed.cluster_id AND state.key = 'schedule-state:' || claimed.name) AS has_state
FROM head
FULL JOIN claimed ON false
LEFT JOIN baton.schedule ON schedule.id = claimed.schedule_id
-- LIMIT 1: by primary key for each row; a join on tables without statistics compares each with each.
LEFT JOIN LATERAL (
    SELECT * FROM baton.execution
    WHERE execution.cluster_id = claimed.cluster_id AND entity_type = 'schedule' AND execution.name = claimed.name
    LIMIT 1) AS execution ON true
ORDER BY claimed.due_at NULLS FIRST, claimed.id;
