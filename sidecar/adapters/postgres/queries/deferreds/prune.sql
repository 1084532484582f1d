-- deferreds/prune: deletes deferreds that ended long ago, in batches, and pending ones whose run was pruned. A deferred
-- of a run that may be delivered again is kept as long as the run: a later attempt must find it. (The next start of a
-- singleton is another run.)
-- SKIP LOCKED: pruning never waits.
WITH horizon AS MATERIALIZED (
    SELECT clock_timestamp() - make_interval(secs => %(older_than_seconds)s) AS at
), ended AS MATERIALIZED (
    SELECT d.id FROM baton.deferred d
    WHERE d.cluster_id = %(cluster_id)s
      AND coalesce(d.finished_at, d.expires_at) < (SELECT at FROM horizon)
      AND NOT EXISTS (SELECT FROM baton.run r WHERE r.id = d.run_id AND r.kind <> 'singleton')
    ORDER BY coalesce(d.finished_at, d.expires_at) LIMIT %(limit)s
    FOR UPDATE OF d SKIP LOCKED
), orphaned AS MATERIALIZED (
    SELECT d.id FROM baton.deferred d
    WHERE d.cluster_id = %(cluster_id)s AND d.finished_at IS NULL AND d.expires_at IS NULL
      AND d.run_id <> 0 AND d.created_at < (SELECT at FROM horizon)
      AND NOT EXISTS (SELECT FROM baton.run r WHERE r.id = d.run_id)
    ORDER BY d.created_at LIMIT %(limit)s
    FOR UPDATE OF d SKIP LOCKED
), gone AS (
    DELETE FROM baton.deferred d
    USING (SELECT id FROM ended UNION ALL SELECT id FROM orphaned) old
    WHERE d.id = old.id
    RETURNING 1
)
SELECT count(*) AS pruned FROM gone
