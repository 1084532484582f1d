-- runs/requeue: at the start of a term, and now and then: runs of former leaders become due at once, with a higher attempt
-- and no retry used. Runs that were cancelled, or whose schedule was retired, end; runs delivered too often have failed.
-- At most `limit` at a time.
-- `lost` also requeues runs of this term that the leader does not know: the answer to its claim was lost, and they never
-- reached the app.
-- Runs of this group's schedules may belong to another group, where they started before the schedule moved. The leader of
-- that group ends them; if it has no leader, they move to this group.
WITH fence AS (
    -- include: fence
), gone AS (
    SELECT id, schedule_id FROM baton.run
    WHERE group_id = %(group_id)s AND state = 'running' AND kind <> 'singleton'
      AND (epoch < %(epoch)s OR (%(lost)s AND epoch = %(epoch)s AND id <> ALL (%(known)s::bigint[])))
      AND EXISTS (SELECT FROM fence)
    ORDER BY epoch, id LIMIT %(limit)s
), held AS MATERIALIZED (
    -- Locked so that a deletion comes before or after; and before the runs, as a deletion does. Runs take the
    -- schedule's current overlap policy.
    SELECT id, retired_at, coalesce(definition ->> 'overlap', 'allow') AS overlap FROM baton.schedule
    WHERE id = ANY (ARRAY (SELECT schedule_id FROM gone))
    ORDER BY id FOR SHARE
), orphan AS MATERIALIZED (
    SELECT id, epoch = %(epoch)s AS unheard, false AS moved, state, attempt, attempts_free, cancel_reason, schedule_id
    FROM baton.run
    WHERE id = ANY (ARRAY (SELECT id FROM gone)) AND (SELECT count(*) FROM held) >= 0
      AND group_id = %(group_id)s AND state = 'running' AND (epoch < %(epoch)s OR (%(lost)s AND epoch = %(epoch)s))
    ORDER BY id FOR UPDATE
), vacant AS (
    -- Groups without a leader: the term was released, or its holder had no heartbeat for much longer than a takeover
    -- may take.
    SELECT term.group_id, term.epoch
    FROM baton.leader_group AS g JOIN baton.term ON term.group_id = g.id
    WHERE g.cluster_id = %(cluster_id)s AND g.id <> %(group_id)s AND EXISTS (SELECT FROM fence)
      AND (term.clean OR NOT EXISTS (
          SELECT FROM baton.runner
          WHERE runner.runner_id = term.runner_id AND seen_at > clock_timestamp() - interval '60 s'))
), stray AS MATERIALIZED (
    -- The epoch is compared on the locked row: a leader that took that group over meanwhile keeps its runs.
    SELECT run.id, false, true, state, attempt, attempts_free, cancel_reason, schedule_id, retired_at,
        coalesce(definition ->> 'overlap', 'allow')
    FROM baton.run
    JOIN vacant USING (group_id) JOIN baton.schedule ON schedule.id = schedule_id
    WHERE run.id = ANY (ARRAY (
            -- Two queries, so that each uses its index on live runs.
            SELECT id FROM vacant JOIN baton.run USING (group_id) WHERE state = 'running'
            UNION ALL
            SELECT id FROM vacant JOIN baton.run USING (group_id) WHERE state IN ('queued', 'waiting')))
      AND state <> 'ended' AND run.epoch <= vacant.epoch
      AND (schedule.group_id = %(group_id)s OR schedule.retired_at IS NOT NULL)
    ORDER BY run.id LIMIT %(limit)s
    -- A run whose schedule is being changed or deleted is requeued next time.
    FOR UPDATE OF run SKIP LOCKED FOR SHARE OF schedule SKIP LOCKED
), found AS (
    -- The values of the locked rows: a cancellation may have come in between.
    SELECT orphan.*, retired_at, overlap FROM orphan LEFT JOIN held ON held.id = schedule_id
    UNION ALL
    SELECT * FROM stray
), decided AS (
    SELECT id, unheard, overlap, state,
        CASE WHEN cancel_reason IS NOT NULL OR retired_at IS NOT NULL THEN 'skipped'
             WHEN state = 'running' AND attempt - attempts_free >= %(deliveries_max)s AND NOT unheard THEN 'failed'
        END AS outcome,
        CASE WHEN retired_at IS NOT NULL THEN 'schedule retired' WHEN moved THEN 'group changed'
             WHEN unheard THEN 'claim taken back' ELSE 'leader changed' END AS cause
    FROM found
), changed AS (
    UPDATE baton.run SET
        group_id = %(group_id)s, overlap = coalesce(d.overlap, run.overlap),
        state = new.state, outcome = d.outcome,
        reason = CASE WHEN d.outcome = 'skipped' THEN coalesce(cancel_reason, 'operator') END,
        error = CASE WHEN d.outcome = 'failed'
                     THEN 'given up after ' || %(deliveries_max)s || ' deliveries: leader changed' ELSE error END,
        attempts_free = attempts_free + d.unheard::int,
        due_at = least(due_at, CASE WHEN run.state = 'running' THEN clock_timestamp() END),
        finished_at = CASE WHEN new.state = 'ended' THEN clock_timestamp() END,
        history = baton.run_event(history, new.state, d.outcome, attempt, %(epoch)s, %(runner_id)s, d.cause)
    FROM decided AS d, LATERAL (SELECT CASE WHEN d.outcome IS NOT NULL THEN 'ended' WHEN d.state = 'running' THEN 'waiting'
                                            ELSE d.state END) AS new (state)
    WHERE run.id = d.id AND run.id = ANY (ARRAY (SELECT id FROM decided))
    RETURNING run.*
), remembered AS (
    INSERT INTO baton.execution AS e (cluster_id, entity_type, name, last_run_at, run_count, last_error)
    SELECT cluster_id, 'schedule', name, max(started_at), count(*), max(error) FROM changed
    WHERE outcome = 'failed' GROUP BY 1, 3 ORDER BY 3
    ON CONFLICT (cluster_id, entity_type, name) DO UPDATE SET
        last_run_at = greatest(e.last_run_at, excluded.last_run_at),
        run_count = e.run_count + excluded.run_count, last_error = excluded.last_error
)
SELECT EXISTS (SELECT FROM fence) AS is_current, id, kind, outcome, reason
FROM (SELECT) AS one LEFT JOIN changed ON true;
