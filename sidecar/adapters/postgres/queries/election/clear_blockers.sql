-- clear_blockers: terminate sessions that are idle in a transaction and hold a row lock on `term`.
-- They are fenced writes of a frozen process; the server would end them too, but later. pg_locks shows
-- a row lock as a lock on the table: RowShareLock or stronger. Readers (pg_dump) hold a weaker lock and
-- block nothing, and a live writer pauses for less than 500 ms between two statements.
SELECT pg_terminate_backend(activity.pid)
FROM pg_locks AS locks JOIN pg_stat_activity AS activity ON activity.pid = locks.pid
WHERE locks.locktype = 'relation' AND locks.relation = 'baton.term'::regclass
  AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND locks.mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock')
  AND activity.state LIKE 'idle in transaction%%'
  AND activity.state_change < clock_timestamp() - interval '500 ms' AND activity.pid <> pg_backend_pid();
