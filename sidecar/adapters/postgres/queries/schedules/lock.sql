-- schedules/lock: locks one schedule until the transaction ends: the leader's claim waits, then sees the change.
-- The group's name by a sub-select: a join would lose a schedule whose group changed while this statement waited.
SELECT schedule.*, clock_timestamp() AS now,
    (SELECT leader_group.name FROM baton.leader_group WHERE leader_group.id = schedule.group_id) AS group_name
FROM baton.schedule
WHERE schedule.cluster_id = %(cluster_id)s AND schedule.name = %(name)s
FOR NO KEY UPDATE;
