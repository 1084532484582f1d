-- poll: read every group that this runner does not hold, and try the locks in `try_ids`, in one statement.
-- MATERIALIZED: the lock function runs once per group, whatever the plan; each further call would lock again.
WITH wanted AS MATERIALIZED (
    SELECT term.group_id, term.epoch, term.runner_id, term.host, term.clean,
           beat.epoch AS beat_epoch, beat.sequence AS beat_sequence, beat.timeline AS beat_timeline
    FROM baton.term JOIN baton.beat USING (group_id)
    WHERE term.group_id = ANY(%(read_ids)s))
SELECT group_id, epoch, runner_id, host, clean, beat_epoch, beat_sequence, beat_timeline,
       CASE WHEN group_id = ANY(%(try_ids)s)
            THEN pg_try_advisory_lock(%(lock_class)s, group_id) ELSE false END AS locked
FROM wanted;
