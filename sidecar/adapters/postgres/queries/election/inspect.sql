-- inspect: the backends that hold these locks, and when the state of each last changed.
SELECT locks.objid::integer AS group_id, activity.pid, activity.backend_start, activity.state_change
FROM pg_locks AS locks JOIN pg_stat_activity AS activity ON activity.pid = locks.pid
WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 2
  AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND locks.classid = %(lock_class)s::integer::bit(32)::bigint::oid
  AND locks.objid = ANY(%(group_ids)s::integer[]::oid[])
  AND activity.state_change IS NOT NULL;
