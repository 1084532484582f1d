-- shared/put_state: writes the entries in `item` (key, state_version, version_min, value, expected, ttl). The statement
-- adds the condition on which an entry that is there may be overwritten: it compares `expected`, on the locked row,
-- with shared/live_version. NULL: any version; 0: no live entry. The EXISTS only keeps a row from being created where
-- one was expected.
-- ORDER BY key: two batches, or a batch and state/clear, cannot deadlock; "C" because the column sorts like that,
-- whatever the database does.
INSERT INTO baton.state AS s (cluster_id, key, state_version, version, value, ttl, updated_at, expires_at)
SELECT %(cluster_id)s, i.key, i.state_version, greatest(i.version_min, baton.unix_microseconds(clock_timestamp())),
       i.value, i.ttl, clock_timestamp(), clock_timestamp() + i.ttl
FROM item i
WHERE coalesce(i.expected, 0) = 0
   OR EXISTS (SELECT FROM baton.state o
              WHERE o.cluster_id = %(cluster_id)s AND o.key = i.key AND o.state_version = i.state_version
                AND o.version = i.expected)
ORDER BY i.key COLLATE "C"
ON CONFLICT (cluster_id, key, state_version) DO UPDATE
SET version = greatest(s.version + 1, excluded.version, baton.unix_microseconds(clock_timestamp())),
    value = excluded.value, ttl = excluded.ttl,
    updated_at = clock_timestamp(), expires_at = clock_timestamp() + excluded.ttl,
    xact = excluded.xact, xact_horizon = excluded.xact_horizon
