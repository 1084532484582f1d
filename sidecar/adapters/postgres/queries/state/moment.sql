-- state/moment: what is visible now, and when that is: where a watch begins.
SELECT pg_current_snapshot()::text AS snapshot, baton.unix_microseconds(statement_timestamp()) AS at
