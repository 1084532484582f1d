-- shared/tombstone: the SET list that deletes the entry `s` of `state`. The row stays, so that its version cannot
-- come back and a watch sees the deletion.
value = NULL, ttl = NULL, expires_at = NULL, updated_at = clock_timestamp(),
version = greatest(s.version + 1, baton.unix_microseconds(clock_timestamp())),
xact = pg_current_xact_id(), xact_horizon = pg_snapshot_xmin(pg_current_snapshot())
