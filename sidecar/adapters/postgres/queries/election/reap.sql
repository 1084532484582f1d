-- reap: end exactly this backend, not another one that got its number since.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND backend_start = %(started_at)s AND state_change = %(changed_at)s;
