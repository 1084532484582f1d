-- job_catalogue/discard: removes dead letters; what is left of them stays among the ended jobs for `jobs.keep`.
WITH chosen AS MATERIALIZED (
    SELECT id FROM baton.job_dead j WHERE cluster_id = %(cluster_id)s
    -- include: dead_matches
    ORDER BY id LIMIT %(limit)s FOR UPDATE
), gone AS (
    DELETE FROM baton.job_dead d USING chosen WHERE d.id = chosen.id RETURNING d.*
), forgotten AS (
    DELETE FROM baton.job_checkpoint WHERE job_id = ANY (ARRAY (SELECT id FROM gone WHERE checkpoint_count > 0))
), ended AS (
    INSERT INTO baton.job_ended (id, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues, priority,
        outcome, name, queue, key, batch, runner_id, error, history)
    SELECT id, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues, priority, 'failed', name, queue, key,
        batch, runner_id, error, baton.run_event(coalesce(history, '[]'), 'ended', 'failed', attempt, 0, '', 'discarded')
    FROM gone RETURNING 1
)
SELECT count(*) AS count FROM ended
