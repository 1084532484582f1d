-- jobs/register: begins a worker lease; its id is the fencing token.
WITH lease AS (
    INSERT INTO baton.worker (cluster_id, runner_id, host) VALUES (%(cluster_id)s, %(runner_id)s, %(host)s) RETURNING id
), beat AS (
    INSERT INTO baton.worker_beat (worker_id, cluster_id) SELECT id, %(cluster_id)s FROM lease
)
SELECT id FROM lease;
