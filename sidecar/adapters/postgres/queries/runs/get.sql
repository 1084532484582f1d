-- runs/get: one run with all its columns.
SELECT run.*, leader_group.name AS group_name
FROM baton.run JOIN baton.leader_group ON leader_group.id = run.group_id
WHERE run.id = %(run_id)s AND run.cluster_id = %(cluster_id)s;
