-- What all lists show of a job `j`, with its body `b`, worker `w` and queue `q`. The runner of an attempt that is over is in
-- the history.
SELECT j.id, j.name, j.queue, j.priority, j.key, j.batch, j.state, j.outcome, j.reason, j.attempt, j.failures, j.rescues, j.due_at,
    j.expires_at, j.started_at, j.finished_at, j.error, j.progress, j.progress_message, j.cancelling, j.version,
    baton.id_time(j.id) AS created_at, coalesce(j.labels, b.labels) AS labels, coalesce(j.content_type, b.content_type) AS content_type,
    coalesce(w.runner_id, j.runner_id, j.history -> -1 ->> 'runner_id', '') AS runner_id,
    CASE WHEN j.state NOT IN ('queued', 'waiting') OR j.due_at > clock_timestamp() THEN ''
         WHEN q.paused THEN 'paused'
         WHEN NOT j.parked THEN ''
         WHEN j.key IS NOT NULL AND EXISTS (SELECT FROM baton.job o WHERE o.cluster_id = j.cluster_id AND o.name = j.name
              AND o.key = j.key AND o.id <> j.id AND (o.id < j.id OR o.admitted)) THEN 'key'
         WHEN q.cluster_max_running > 0 AND q.cluster_max_running <= (SELECT count(*) FROM baton.job o
              WHERE o.cluster_id = j.cluster_id AND o.queue = j.queue AND o.admitted) THEN 'queue_limit'
         WHEN q.rate > 0 THEN 'rate' ELSE '' END AS blocked_by
