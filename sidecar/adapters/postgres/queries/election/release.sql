-- release: record that the app acknowledged the loss, so that the successor need not wait for the grace period.
UPDATE baton.term SET
    clean = true, released_at = clock_timestamp(),
    timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
WHERE group_id = %(group_id)s AND epoch = %(epoch)s;
