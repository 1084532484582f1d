-- runs/list: a page of runs, newest first, with ids below `before`. A filter that is NULL is off.
SELECT run.id, run.kind, run.name, run.tick, run.tick_last, run.tick_count, run.state, run.outcome, run.reason,
    run.due_at, run.attempt, run.epoch, run.runner_id, run.cancel_reason, run.error, run.progress,
    run.progress_message, run.created_at, run.started_at, run.finished_at, leader_group.name AS group_name,
    NULL::bytea AS result, '[]'::jsonb AS history
FROM baton.run JOIN baton.leader_group ON leader_group.id = run.group_id
WHERE run.cluster_id = %(cluster_id)s
  AND (%(before)s::bigint IS NULL OR run.id < %(before)s)
  AND (%(name)s::text IS NULL OR run.name = %(name)s)
  AND (%(outcome)s::text IS NULL OR run.outcome = %(outcome)s)
  AND (%(state)s::text IS NULL OR run.state = %(state)s)
  AND (%(kind)s::text IS NULL OR run.kind = %(kind)s)
  -- An id begins with the time of its making: the index on ids finds a range of time.
  AND (%(since)s::timestamptz IS NULL OR run.id >= (baton.run_id_at(%(since)s)))
  AND (%(until)s::timestamptz IS NULL OR run.id < (baton.run_id_at(%(until)s)))
ORDER BY run.id DESC LIMIT %(limit)s;
