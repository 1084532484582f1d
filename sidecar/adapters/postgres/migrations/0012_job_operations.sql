-- Cancelling jobs, views of them, partitions by the day, and who may call the functions.

-- Stores a job that failed for good as a dead letter, with its payload. Its steps stay: a replay continues where it failed.
CREATE FUNCTION baton.bury_job(j baton.job, finished timestamptz, last_error text, code text, used integer, cause text, runner text)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    INSERT INTO baton.job_dead (id, finished_at, due_at, expires_at, started_at, cluster_id, attempt, attempts_free, failures,
        checkpoint_count, checkpoint_bytes, rescues, priority, name, queue, key, batch, runner_id, error, error_code, history,
        payload, content_type, labels, attempts, retry_initial, retry_max, timeout)
    SELECT j.id, finished, j.due_at, j.expires_at, j.started_at, j.cluster_id, j.attempt, j.attempts_free, j.failures + used,
        j.checkpoint_count, j.checkpoint_bytes, j.rescues, j.priority, j.name, j.queue, j.key, j.batch, runner, last_error, code,
        baton.run_event(coalesce(j.history, '[]'), 'ended', 'failed', j.attempt, j.worker_id, runner, cause),
        coalesce(b.payload, ''), coalesce(b.content_type, ''), b.labels, b.attempts, b.retry_initial, b.retry_max, b.timeout
    FROM (SELECT) AS one LEFT JOIN baton.job_body AS b ON b.id = j.id
    RETURNING id
$$;

-- The job has ended: its unique key is free, or counts until the end of its window.
-- SKIP LOCKED: a submission in a transaction that stays open holds nothing up. The sweep releases what is left.
CREATE FUNCTION baton.release_unique_key(j baton.job) RETURNS void LANGUAGE sql VOLATILE AS $$
    WITH held AS (
        SELECT u.cluster_id, u.name, u.unique_key, u.expires_at FROM baton.job_unique AS u
        WHERE u.cluster_id = j.cluster_id AND u.name = j.name AND u.unique_key = j.unique_key AND u.job_id = j.id
        FOR UPDATE SKIP LOCKED
    ), released AS (
        DELETE FROM baton.job_unique AS u USING held AS h
        WHERE u.cluster_id = h.cluster_id AND u.name = h.name AND u.unique_key = h.unique_key AND h.expires_at IS NULL
    )
    UPDATE baton.job_unique AS u SET live = false FROM held AS h
    WHERE u.cluster_id = h.cluster_id AND u.name = h.name AND u.unique_key = h.unique_key AND h.expires_at IS NOT NULL
$$;

-- Ends live jobs that are not running as skipped; returns them. With the rights of the caller.
CREATE FUNCTION baton.skip_jobs(cluster integer, ids bigint[], why text, cause text) RETURNS SETOF bigint
LANGUAGE sql VOLATILE AS $$
    WITH gone AS (
        DELETE FROM baton.job WHERE job.id = ANY (ids) AND job.cluster_id = cluster AND state <> 'running'
        RETURNING job.*, job AS j
    ), ended AS (
        INSERT INTO baton.job_ended (id, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues, priority,
            outcome, reason, name, queue, key, batch, error, history)
        SELECT id, due_at, expires_at, started_at, cluster_id, attempt, failures, rescues, priority, 'skipped', why, name, queue,
            key, batch, error, baton.run_event(coalesce(history, '[]'), 'ended', 'skipped', attempt, 0, '', cause)
        FROM gone
    ), counted AS (
        INSERT INTO baton.job_batch_count (cluster_id, batch, skipped)
        SELECT cluster_id, batch, count(*) FROM gone WHERE batch IS NOT NULL GROUP BY 1, 2
    ), forgotten AS (
        DELETE FROM baton.job_checkpoint
        WHERE job_id = ANY (ARRAY (SELECT id FROM gone WHERE checkpoint_count > 0))
    )
    SELECT id FROM (
        SELECT id, CASE WHEN unique_key IS NOT NULL THEN baton.release_unique_key(j) END FROM gone) AS ended
$$;

-- Cancels a job in the caller's transaction: `cancelled` if it ended at once, `requested` if it runs and was asked to stop,
-- `ended` if it is not live.
CREATE FUNCTION baton.cancel_job(cluster text, job_id bigint, note text DEFAULT '') RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number integer := baton.cluster_id(cluster);
    cause text := CASE WHEN coalesce(note, '') = '' THEN 'cancelled' ELSE 'cancelled: ' || note END;
BEGIN
    PERFORM baton.check_argument('note', octet_length(coalesce(note, '')) <= 255, 'has more than 255 bytes');
    IF EXISTS (SELECT FROM baton.skip_jobs(number, ARRAY[job_id], 'operator', cause)) THEN
        RETURN 'cancelled';
    END IF;
    UPDATE baton.job SET cancel_note = coalesce(cancel_note, cause)
    WHERE job.id = job_id AND cluster_id = number AND state = 'running';
    RETURN CASE WHEN FOUND THEN 'requested' ELSE 'ended' END;
END $$;

-- ── views ───────────────────────────────────────────────────────────────────────────────────────

CREATE VIEW baton.jobs AS
SELECT cluster.name AS cluster, j.id AS job_id, j.name, j.queue,
    (ARRAY['critical', 'high', 'normal', 'low'])[j.priority] AS priority, j.key, j.batch,
    j.state, j.outcome, j.reason, j.attempt, j.failures, j.rescues, baton.id_time(j.id) AS created_at,
    j.due_at, j.expires_at, j.started_at, j.finished_at, j.error
FROM (
    SELECT cluster_id, id, name, queue, priority, key, batch,
        CASE WHEN state = 'running' THEN 'running' WHEN attempt = 0 THEN 'queued' ELSE 'waiting' END AS state,
        NULL AS outcome, NULL AS reason, attempt, failures, rescues, due_at, expires_at, started_at,
        NULL::timestamptz AS finished_at, error
    FROM baton.job
    UNION ALL
    SELECT cluster_id, id, name, queue, priority, key, batch, 'ended', outcome, reason, attempt, failures, rescues, due_at,
        expires_at, started_at, finished_at, error
    FROM baton.job_ended
    UNION ALL
    SELECT cluster_id, id, name, queue, priority, key, batch, 'ended', 'failed', NULL, attempt, failures, rescues, due_at,
        expires_at, started_at, finished_at, error
    FROM baton.job_dead
) AS j JOIN baton.cluster ON cluster.id = j.cluster_id;

CREATE VIEW baton.dead_jobs AS
SELECT cluster.name AS cluster, d.id AS job_id, d.name, d.queue,
    (ARRAY['critical', 'high', 'normal', 'low'])[d.priority] AS priority, d.key, d.batch, d.attempt, d.failures, d.rescues,
    baton.id_time(d.id) AS created_at, d.finished_at, d.error, d.error_code, d.payload, d.content_type, d.labels, d.history
FROM baton.job_dead d JOIN baton.cluster ON cluster.id = d.cluster_id;

CREATE VIEW baton.queue_stats AS
WITH live AS (
    SELECT cluster_id, queue, count(*) FILTER (WHERE state <> 'running' AND due_at <= now()) AS ready,
        count(*) FILTER (WHERE state <> 'running' AND due_at > now()) AS scheduled,
        count(*) FILTER (WHERE state = 'running') AS running,
        min(due_at) FILTER (WHERE state <> 'running' AND due_at <= now()) AS oldest_due_at
    FROM baton.job GROUP BY 1, 2
), dead AS (
    SELECT cluster_id, queue, count(*) AS dead FROM baton.job_dead GROUP BY 1, 2
), recent AS (
    SELECT cluster_id, queue, count(*) AS ended, count(*) FILTER (WHERE outcome = 'failed') AS failed FROM (
        SELECT cluster_id, queue, outcome FROM baton.job_ended WHERE finished_at > now() - interval '1 minute'
        UNION ALL
        SELECT cluster_id, queue, 'failed' FROM baton.job_dead WHERE finished_at > now() - interval '1 minute') AS e
    GROUP BY 1, 2
), named AS (
    SELECT cluster_id, queue FROM live UNION SELECT cluster_id, queue FROM dead UNION SELECT cluster_id, queue FROM recent
    UNION SELECT cluster_id, name FROM baton.job_queue
)
SELECT cluster.name AS cluster, n.queue, coalesce(ready, 0) AS ready, coalesce(scheduled, 0) AS scheduled,
    coalesce(running, 0) AS running, coalesce(dead, 0) AS dead, now() - oldest_due_at AS oldest_wait,
    coalesce(ended, 0) AS ended_last_minute, coalesce(failed, 0) AS failed_last_minute,
    coalesce(q.paused, false) AS paused, coalesce(q.pause_note, '') AS pause_note, coalesce(q.max_running, 0) AS max_running,
    coalesce(q.cluster_max_running, 0) AS cluster_max_running, coalesce(q.rate, 0) AS rate
FROM named n JOIN baton.cluster ON cluster.id = n.cluster_id
LEFT JOIN live USING (cluster_id, queue) LEFT JOIN dead USING (cluster_id, queue) LEFT JOIN recent USING (cluster_id, queue)
LEFT JOIN baton.job_queue q ON q.cluster_id = n.cluster_id AND q.name = n.queue;

-- ── partitions ──────────────────────────────────────────────────────────────────────────────────

-- Makes the partition of one day, unless it is there or rows of that day are in the default partition already. Attached, not
-- created as a partition: that locks out no claim, and waits for no transaction that has submitted a job.
CREATE FUNCTION baton.make_job_partition(parent text, day date, low text, high text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    partition text := parent || to_char(day, '"_p"YYYYMMDD');
BEGIN
    IF to_regclass('baton.' || partition) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE 'CREATE TABLE baton.' || partition || ' (LIKE baton.' || parent || ' INCLUDING ALL)';
    EXECUTE 'ALTER TABLE baton.' || parent || ' ATTACH PARTITION baton.' || partition
        || format(' FOR VALUES FROM (%L) TO (%L)', low, high);
    RETURN true;
EXCEPTION WHEN check_violation OR lock_not_available OR invalid_object_definition THEN
    RETURN false;  -- nothing is lost: the rows of that day are in the default partition
END $$;

-- Drops the partition of a day of bodies, after the bodies of jobs that are still live were moved to the default partition.
-- A day with many live jobs stays.
CREATE FUNCTION baton.drop_job_bodies(partition text, low bigint, high bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM (SELECT FROM baton.job WHERE id >= low AND id < high LIMIT 10001) AS live) > 10000 THEN
        RETURN false;
    END IF;
    EXECUTE 'ALTER TABLE baton.job_body DETACH PARTITION baton.' || partition;
    EXECUTE 'INSERT INTO baton.job_body SELECT b.* FROM baton.' || partition || ' AS b JOIN baton.job USING (id)';
    EXECUTE 'DROP TABLE baton.' || partition;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;

CREATE FUNCTION baton.drop_job_partition(partition text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'DROP TABLE baton.' || partition;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;

-- Makes the partitions of today and the next days, and drops those older than `keep`; any pod may call it at any time. Returns
-- what it made and dropped. With the rights of the owner of the tables, for whoever may delete jobs.
CREATE FUNCTION baton.job_partitions(keep interval) RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' SET timezone = 'UTC' AS $$
DECLARE
    today date := clock_timestamp()::date;
    done text[] := '{}';
    day date;
    partition text;
    gone boolean;
BEGIN
    IF NOT has_table_privilege(session_user, 'baton.job', 'DELETE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'baton.job_partitions: needs the right to delete jobs';
    END IF;
    PERFORM baton.check_argument('keep', keep >= interval '1 hour', 'must be at least one hour');
    IF NOT pg_try_advisory_xact_lock('baton.job_body'::regclass::oid::integer, 0) THEN
        RETURN done;
    END IF;
    FOR day IN SELECT today + n FROM generate_series(0, 3) AS n LOOP
        IF baton.make_job_partition('job_body', day, baton.id_at(day)::text, baton.id_at(day + 1)::text) THEN
            done := done || ('+job_body ' || day);
        END IF;
        IF baton.make_job_partition('job_ended', day, day::text, (day + 1)::text) THEN
            done := done || ('+job_ended ' || day);
        END IF;
    END LOOP;
    FOR partition, day IN
        SELECT relname, to_date(right(relname, 8), 'YYYYMMDD') FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent IN ('baton.job_body'::regclass, 'baton.job_ended'::regclass) AND relname ~ '_p\d{8}$'
    LOOP
        CONTINUE WHEN (day + 1)::timestamptz > clock_timestamp() - keep;
        gone := CASE WHEN partition LIKE 'job_body%' THEN baton.drop_job_bodies(partition, baton.id_at(day), baton.id_at(day + 1))
                     ELSE baton.drop_job_partition(partition) END;
        done := CASE WHEN gone THEN done || ('-' || partition) ELSE done END;
    END LOOP;
    DELETE FROM baton.job_ended_rest WHERE finished_at < clock_timestamp() - keep;
    DELETE FROM baton.job_body_rest AS b
    WHERE id < baton.id_at(clock_timestamp() - keep) AND NOT EXISTS (SELECT FROM baton.job WHERE job.id = b.id);
    RETURN done;
END $$;
SELECT baton.job_partitions(interval '7 days');

-- ── who may submit ──────────────────────────────────────────────────────────────────────────────

REVOKE EXECUTE ON FUNCTION baton.enqueue, baton.enqueue_many, baton.cancel_job FROM PUBLIC;
-- Everything that these call works with the rights of the caller, and has none to give.
DO $$
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'baton_enqueue') THEN
            CREATE ROLE baton_enqueue NOLOGIN;
        END IF;
    EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
        NULL;  -- the administrator creates it: docs/security.md
    END;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'baton_enqueue') THEN
        EXECUTE (SELECT 'GRANT USAGE ON SCHEMA ' || relnamespace::regnamespace || ' TO baton_enqueue'
                 FROM pg_class WHERE oid = 'baton.meta'::regclass);
        GRANT EXECUTE ON FUNCTION baton.enqueue, baton.enqueue_many, baton.cancel_job TO baton_enqueue;
    END IF;
END $$;
