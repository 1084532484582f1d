-- reports/deferreds: a page of deferreds, those of the newest runs first; neither salt nor value leaves the database.
-- By the unique index on (cluster_id, run_id, name).
SELECT name, run_id, state, ''::bytea AS value, error, created_at, finished_at, expires_at
FROM baton.deferred
WHERE cluster_id = %(cluster_id)s
  AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
  AND (%(state)s::text IS NULL OR state = %(state)s)
  AND (%(before_run)s::bigint IS NULL OR run_id < %(before_run)s
       OR (run_id = %(before_run)s AND name < %(before_name)s))
ORDER BY run_id DESC, name DESC LIMIT %(limit)s;
