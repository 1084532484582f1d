-- runs/retry: queues a failed run again, with fresh counts of retries and deliveries; attempt numbers continue.
-- Its schedule is locked, so a deletion comes before or after. The run takes the schedule's current group and overlap.
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
