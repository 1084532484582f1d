-- After a lost answer to a completion: which of these attempts are still open? Only their holder ends them, so
-- one that is not open any more was completed by the statement whose answer was lost.
SELECT run.id, run.kind, run.state, run.outcome, run.reason, run.attempt, run.epoch,
    run.finished_at, extract(epoch FROM run.finished_at - run.attempt_started_at)::double precision AS seconds
FROM baton.run WHERE id = ANY (%(run_ids)s::bigint[]);
