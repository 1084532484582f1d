-- reports/terms: terms of the cluster's groups, newest first, after the one of (`epoch`, `group_id`).
SELECT term_history.*, leader_group.name AS group_name
FROM baton.term_history JOIN baton.leader_group ON leader_group.id = term_history.group_id
WHERE leader_group.cluster_id = %(cluster_id)s
  AND (%(group)s::text IS NULL OR leader_group.name = %(group)s)
  AND (%(epoch)s::bigint IS NULL
       OR (term_history.epoch, term_history.group_id) < (%(epoch)s::bigint, %(group_id)s::integer))
ORDER BY term_history.epoch DESC, term_history.group_id DESC LIMIT %(limit)s;
