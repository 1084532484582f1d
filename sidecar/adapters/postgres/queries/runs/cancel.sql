-- End a run that waits; ask for the end of one that runs. The first commit wins: an ended one is left alone.
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
