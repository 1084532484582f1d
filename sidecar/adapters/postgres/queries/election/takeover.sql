-- takeover: the holder of the lock starts the next epoch; returns it and the previous content of the rows.
-- An epoch is at least the milliseconds since 1970: a restore, or a failover that lost writes, cannot repeat one. If the
-- clock of the new server is behind, `highest_epoch_seen` prevents it, provided that this runner saw the lost epochs.
-- The history gets the new term; one that was not released ends in it as lost.
-- FOR UPDATE waits for fenced writes of the old term (FOR SHARE), at most for lock_timeout.
WITH found AS MATERIALIZED (
    SELECT group_id, epoch, clean, timeline FROM baton.term
    WHERE group_id = %(group_id)s FOR UPDATE),
server AS MATERIALIZED (
    SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline),
found_beat AS MATERIALIZED (
    SELECT epoch, sequence, timeline FROM baton.beat
    WHERE group_id = %(group_id)s FOR UPDATE),
taken AS (
    UPDATE baton.term SET
        epoch = greatest(found.epoch + 1, %(highest_epoch_seen)s::bigint + 1,
                         (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
        runner_id = %(runner_id)s, host = %(host)s, clean = false, timeline = server.timeline,
        taken_at = clock_timestamp(), released_at = NULL
    FROM found, server WHERE term.group_id = found.group_id
    RETURNING term.group_id, term.epoch, term.taken_at),
bumped AS (
    UPDATE baton.beat SET
        epoch = taken.epoch, sequence = beat.sequence + 1, timeline = server.timeline
    FROM taken, server WHERE beat.group_id = taken.group_id),
lost AS (
    UPDATE baton.term_history SET ended_at = taken.taken_at, why = 'lost'
    FROM found, taken WHERE term_history.group_id = found.group_id AND term_history.epoch = found.epoch
      AND term_history.ended_at IS NULL),
noted AS (
    INSERT INTO baton.term_history (group_id, epoch, runner_id, host, taken_at)
    SELECT group_id, epoch, %(runner_id)s, %(host)s, taken_at FROM taken),
forgotten AS (
    DELETE FROM baton.term_history WHERE group_id = %(group_id)s AND epoch < (
        SELECT epoch FROM baton.term_history WHERE group_id = %(group_id)s
        ORDER BY epoch DESC OFFSET 999 LIMIT 1))
SELECT taken.epoch, server.timeline, found.clean AS found_clean, found.timeline AS clean_timeline,
       found_beat.epoch AS beat_epoch, found_beat.sequence AS beat_sequence,
       found_beat.timeline AS beat_timeline
FROM taken, server, found, found_beat;
