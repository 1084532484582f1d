-- At the start of a term: runs whose leader is gone are due again at once, with a higher attempt and no retry
-- used up. Cancelled ones end; those delivered too often have failed. At most `limit` at a time.
-- `lost` also takes back runs of this very term that the leader does not know of: the answer to its claim was
-- lost; they never reached the app.
WITH fence AS MATERIALIZED (
    SELECT 1 FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
), orphan AS MATERIALIZED (
    SELECT id FROM baton.run
    WHERE group_id = %(group_id)s AND state = 'running' AND kind <> 'singleton'
      AND (epoch < %(epoch)s OR (%(lost)s AND epoch = %(epoch)s AND id <> ALL (%(known)s::bigint[])))
      AND EXISTS (SELECT FROM fence)
    ORDER BY epoch, id LIMIT %(limit)s
    FOR UPDATE
), decided AS (
    SELECT run.id,
        CASE WHEN cancel_reason IS NOT NULL THEN 'skipped'
             WHEN run.epoch < %(epoch)s AND attempt - attempts_free >= %(deliveries_max)s THEN 'failed' END AS outcome,
        CASE WHEN run.epoch < %(epoch)s THEN 'leader changed' ELSE 'claim taken back' END AS cause
    FROM baton.run WHERE run.id = ANY (ARRAY (SELECT id FROM orphan))
), changed AS (
    UPDATE baton.run SET
        state = CASE WHEN decided.outcome IS NULL THEN 'waiting' ELSE 'ended' END,
        outcome = decided.outcome,
        reason = CASE WHEN decided.outcome = 'skipped' THEN run.cancel_reason END,
        error = CASE WHEN decided.outcome = 'failed'
                     THEN 'given up after ' || %(deliveries_max)s || ' deliveries: leader changed' ELSE run.error END,
        attempts_free = run.attempts_free + CASE WHEN run.epoch < %(epoch)s THEN 0 ELSE 1 END,
        due_at = least(run.due_at, clock_timestamp()),
        finished_at = CASE WHEN decided.outcome IS NOT NULL THEN clock_timestamp() END,
        history = baton.run_event(
            run.history, CASE WHEN decided.outcome IS NULL THEN 'waiting' ELSE 'ended' END, decided.outcome,
            run.attempt, %(epoch)s, %(runner_id)s, decided.cause)
    FROM decided WHERE run.id = decided.id AND run.id = ANY (ARRAY (SELECT id FROM orphan))
    RETURNING run.id, run.kind, run.outcome, run.reason
)
SELECT EXISTS (SELECT FROM fence) AS stands, changed.id, changed.kind, changed.outcome, changed.reason
FROM (SELECT) AS one LEFT JOIN changed ON true;
