-- Hold one schedule until the transaction ends: the leader's claim waits, then sees the change.
SELECT schedule.*, leader_group.name AS group_name, clock_timestamp() AS now
FROM baton.schedule JOIN baton.leader_group ON leader_group.id = schedule.group_id
WHERE schedule.cluster_id = %(cluster_id)s AND schedule.name = %(name)s
FOR NO KEY UPDATE OF schedule;
