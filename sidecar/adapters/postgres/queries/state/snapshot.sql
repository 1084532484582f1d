-- state/snapshot: the current snapshot, time and server: where a watch begins.
SELECT pg_current_snapshot()::text AS snapshot, baton.unix_microseconds(statement_timestamp()) AS at,
       baton.unix_microseconds(pg_postmaster_start_time()) AS server_started
