-- jobs/find_lost_completions: where jobs are now whose completion was not accepted. Returns once that is replicated.
SELECT j.id, j.attempt, j.worker_id, j.state, j.outcome, j.reason, j.finished_at,
    extract(epoch FROM j.finished_at - j.started_at)::double precision AS seconds,
    baton.await_replication_at_commit() AS awaited
FROM (
    SELECT id, attempt, worker_id, CASE WHEN state = 'running' THEN 'running' ELSE 'waiting' END AS state,
        NULL AS outcome, NULL AS reason, NULL::timestamptz AS finished_at, started_at
    FROM baton.job WHERE id = ANY (%(run_ids)s::bigint[])
    UNION ALL
    SELECT id, attempt, NULL, 'ended', outcome, reason, finished_at, started_at
    FROM baton.job_ended WHERE id = ANY (%(run_ids)s::bigint[])
    UNION ALL
    SELECT id, attempt, NULL, 'ended', 'failed', NULL, finished_at, started_at
    FROM baton.job_dead WHERE id = ANY (%(run_ids)s::bigint[])) AS j;
