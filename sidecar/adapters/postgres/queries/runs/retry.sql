-- Give a failed run a new life: a fresh count of retries and deliveries, its attempt numbers go on.
-- Its schedule is held: a deletion is seen here, or sees what is queued. Where it is by now, and whether its runs may
-- overlap, holds for this one too.
WITH target AS MATERIALIZED (
    SELECT schedule.id, schedule.group_id, coalesce(schedule.definition ->> 'overlap', 'allow') AS overlap
    FROM baton.run JOIN baton.schedule ON schedule.id = run.schedule_id
    WHERE run.id = %(run_id)s AND run.cluster_id = %(cluster_id)s AND schedule.retired_at IS NULL
    FOR SHARE OF schedule
)
UPDATE baton.run SET
    group_id = target.group_id, overlap = target.overlap,
    state = 'queued', outcome = NULL, finished_at = NULL, failures = 0, attempts_free = attempt,
    cancel_reason = NULL, cancel_note = '', due_at = clock_timestamp(), queued_at = clock_timestamp(),
    history = baton.run_event(history, 'queued', NULL, attempt, 0, %(runner_id)s, 'retried by request')
FROM target
WHERE run.id = %(run_id)s AND run.schedule_id = target.id AND run.state = 'ended' AND run.outcome = 'failed'
  AND run.kind <> 'singleton'
RETURNING run.id;
