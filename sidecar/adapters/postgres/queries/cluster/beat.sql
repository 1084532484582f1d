-- cluster/beat: writes this runner's heartbeat and returns the other runners that are alive. Rows of runners that
-- have been gone for an hour are deleted, after this runner's own row is written.
-- SKIP LOCKED: after an hour without Postgres all rows are that old, and runners would wait for each other's rows.
WITH mine AS (
    INSERT INTO baton.runner AS runner (
        runner_id, cluster_id, host, version, campaigning, campaigning_since, config_revision,
        config_loaded_at, group_ids, healthy)
    VALUES (%(runner_id)s, %(cluster_id)s, %(host)s, %(version)s, %(campaigning)s,
            CASE WHEN %(campaigning)s THEN clock_timestamp() END, %(config_revision)s,
            clock_timestamp(), %(group_ids)s, %(healthy)s)
    ON CONFLICT (runner_id) DO UPDATE SET
        campaigning = excluded.campaigning,
        campaigning_since = CASE WHEN NOT excluded.campaigning THEN NULL
            ELSE coalesce(runner.campaigning_since, clock_timestamp()) END,
        config_revision = excluded.config_revision, group_ids = excluded.group_ids, healthy = excluded.healthy,
        seen_at = clock_timestamp()
    RETURNING 1),
removed AS (
    DELETE FROM baton.runner WHERE runner_id = ANY (ARRAY (
        SELECT runner_id FROM baton.runner
        WHERE cluster_id = %(cluster_id)s AND runner_id <> %(runner_id)s
          AND seen_at < clock_timestamp() - interval '1 hour' AND EXISTS (SELECT FROM mine)
        FOR UPDATE SKIP LOCKED)))
SELECT runner_id, campaigning,
       coalesce(extract(epoch FROM clock_timestamp() - campaigning_since), 0)::float8
           AS campaigning_seconds
FROM baton.runner
WHERE cluster_id = %(cluster_id)s AND runner_id <> %(runner_id)s
  AND seen_at > clock_timestamp() - make_interval(secs => %(alive_seconds)s);
