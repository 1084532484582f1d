-- jobs/take_back: jobs that this worker claimed and does not know: the answer to its claim was lost, and they never reached
-- the app. They are due again.
WITH fence AS (
    -- include: fence_of_worker
), lost AS MATERIALIZED (
    SELECT id FROM baton.job
    WHERE worker_id = %(worker_id)s AND state = 'running' AND id <> ALL (%(known)s::bigint[]) AND EXISTS (SELECT FROM fence)
    FOR UPDATE SKIP LOCKED
), returned AS (
    UPDATE baton.job SET state = 'ready', worker_id = NULL, attempts_free = attempts_free + 1
    WHERE id = ANY (ARRAY (SELECT id FROM lost)) RETURNING id
)
SELECT EXISTS (SELECT FROM fence) AS is_current, (SELECT count(*) FROM returned) AS count;
