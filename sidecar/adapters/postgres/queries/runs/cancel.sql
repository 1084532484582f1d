-- runs/cancel: ends a run that is queued or waiting; requests the end of one that is running. Ended runs do not change.
UPDATE baton.run SET
    state = CASE WHEN state = 'running' THEN 'running' ELSE 'ended' END,
    outcome = CASE WHEN state = 'running' THEN NULL ELSE 'skipped' END,
    reason = CASE WHEN state = 'running' THEN NULL ELSE 'operator' END,
    finished_at = CASE WHEN state = 'running' THEN NULL ELSE clock_timestamp() END,
    cancel_reason = coalesce(cancel_reason, 'operator'), cancel_note = %(cause)s,
    history = CASE WHEN state = 'running' THEN history
                   ELSE baton.run_event(history, 'ended', 'skipped', attempt, 0, %(runner_id)s, %(cause)s) END
WHERE id = %(run_id)s AND cluster_id = %(cluster_id)s AND state <> 'ended' AND kind <> 'singleton'
RETURNING id, state;
