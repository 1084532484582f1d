-- runs/find_lost_completions: the current state of runs whose completion was not accepted. Only the leader of the epoch
-- ends its attempts, so after a lost answer an attempt that has ended was ended by the lost statement. Returns once
-- that is replicated.
SELECT run.id, run.kind, run.state, run.outcome, run.reason, run.attempt, run.epoch,
    run.finished_at, extract(epoch FROM run.finished_at - run.attempt_started_at)::double precision AS seconds,
    baton.await_replication_at_commit() AS awaited
FROM baton.run WHERE id = ANY (%(run_ids)s::bigint[]);
