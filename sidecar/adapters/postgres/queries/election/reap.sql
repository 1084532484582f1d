-- reap: terminate exactly this backend, not a later one with the same pid, nor one that has been active since.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND backend_start = %(started_at)s AND state_change = %(changed_at)s;
