-- job_catalogue/submit: stores the jobs of several calls; one row per job, in order. A call with a job of a closed batch stores
-- nothing: its one row has no job. A request_id that is taken, or a unique key with `reject`, fails the statement with a
-- unique violation: then nothing is stored, and each call is sent by itself.
-- The sidecar notifies the workers after the commit, at most every few milliseconds: `wake` is off.
WITH given AS MATERIALIZED (
    -- include: given_jobs
), refused AS (
    SELECT DISTINCT given.call FROM given JOIN baton.job_batch b ON b.batch = given.batch
    WHERE b.cluster_id = %(cluster_id)s AND b.closed
), kept AS MATERIALIZED (
    SELECT call, n, spec, row_number() OVER (ORDER BY n) AS place FROM given
    WHERE call NOT IN (SELECT call FROM refused)
), submitted AS MATERIALIZED (
    SELECT kept.call, kept.n, s.job_id, s.duplicate
    FROM baton.submit_jobs(%(cluster_id)s::integer, ARRAY (SELECT spec FROM kept ORDER BY place), false) AS s
    JOIN kept USING (place)
), requests AS (
    INSERT INTO baton.job_request (cluster_id, request_id, digest, job_ids, duplicates)
    SELECT %(cluster_id)s, r.request_id, r.digest, array_agg(s.job_id ORDER BY s.n), array_agg(s.duplicate ORDER BY s.n)
    FROM unnest(%(request_calls)s::integer[], %(request_ids)s::text[], %(digests)s::bytea[]) AS r (call, request_id, digest)
    JOIN submitted s USING (call)
    GROUP BY r.request_id, r.digest
)
SELECT call, n, job_id, duplicate FROM submitted
UNION ALL
SELECT call, 0, NULL, NULL FROM refused
ORDER BY 1, 2
