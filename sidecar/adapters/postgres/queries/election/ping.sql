-- ping: extend the lease of every group that this runner holds; a group missing from the result has lost its epoch.
UPDATE baton.beat SET
    sequence = beat.sequence + 1,
    timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
FROM unnest(%(group_ids)s::integer[], %(epochs)s::bigint[]) AS held (group_id, epoch)
WHERE beat.group_id = held.group_id AND beat.epoch = held.epoch
RETURNING beat.group_id, EXISTS (
    SELECT FROM baton.resign_request
    WHERE resign_request.group_id = beat.group_id AND resign_request.epoch = beat.epoch) AS resign;
