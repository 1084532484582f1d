-- jobs/park: jobs that were ready before their queue got a limit wait for it too.
WITH fence AS MATERIALIZED (
    -- include: fence
), found AS MATERIALIZED (
    SELECT id FROM baton.job
    WHERE cluster_id = %(cluster_id)s AND queue = ANY (%(queues)s::text[]) AND priority BETWEEN 1 AND 4
      AND state = 'ready' AND NOT admitted AND EXISTS (SELECT FROM fence)
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), parked AS (
    UPDATE baton.job SET state = 'parked' WHERE id = ANY (ARRAY (SELECT id FROM found)) RETURNING id
)
SELECT EXISTS (SELECT FROM fence) AS is_current, (SELECT count(*) FROM parked) AS parked;
