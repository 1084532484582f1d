-- Give a failed run a new life: a fresh count of retries and deliveries, its attempt numbers go on.
UPDATE baton.run SET
    state = 'queued', outcome = NULL, finished_at = NULL, failures = 0, attempts_free = attempt,
    cancel_reason = NULL, cancel_note = '', due_at = clock_timestamp(), queued_at = clock_timestamp(),
    history = baton.run_event(history, 'queued', NULL, attempt, 0, %(runner_id)s, 'retried by request')
WHERE id = %(run_id)s AND cluster_id = %(cluster_id)s AND state = 'ended' AND outcome = 'failed'
  AND kind <> 'singleton'
  AND EXISTS (SELECT FROM baton.schedule WHERE schedule.id = run.schedule_id AND retired_at IS NULL)
RETURNING id;
