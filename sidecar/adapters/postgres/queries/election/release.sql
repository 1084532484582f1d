-- release: record that the app acknowledged the loss, so that the successor need not wait for the grace period; and why
-- the term ended, in the history.
WITH released AS (
    UPDATE baton.term SET
        clean = true, released_at = clock_timestamp(),
        timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
    WHERE group_id = %(group_id)s AND epoch = %(epoch)s
    RETURNING group_id, epoch, released_at)
UPDATE baton.term_history SET ended_at = released.released_at, why = %(why)s
FROM released WHERE term_history.group_id = released.group_id AND term_history.epoch = released.epoch;
