-- A sign of life of the live attempt. What is not given stays as it was.
WITH live AS MATERIALIZED (
    SELECT id, group_id FROM baton.run
    WHERE id = %(run_id)s AND cluster_id = %(cluster_id)s AND state = 'running'
      AND attempt = %(attempt)s AND epoch = %(epoch)s
    FOR NO KEY UPDATE
), fence AS MATERIALIZED (
    SELECT 1 FROM baton.term
    WHERE group_id = (SELECT group_id FROM live) AND epoch = %(epoch)s FOR SHARE
), changed AS (
    UPDATE baton.run SET heartbeat_at = clock_timestamp(), progress = coalesce(%(progress)s, progress),
        progress_message = coalesce(%(message)s, progress_message)
    FROM live WHERE run.id = live.id AND EXISTS (SELECT FROM fence)
    RETURNING run.kind, run.name
)
SELECT kind, name FROM changed;
