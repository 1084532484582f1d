-- Submitting jobs: from the sidecar, and by SQL in the user's own transaction.

CREATE TYPE baton.job_spec AS (
    name text, payload bytea, content_type text, queue text, priority smallint, due_at timestamptz, expires_at timestamptz,
    key text, unique_key text, unique_window interval, on_conflict text,
    attempts integer, retry_initial double precision, retry_max double precision, timeout double precision,
    labels jsonb, batch text
);

-- The job that has this unique key; it takes the key for `new_id` if none has it. `replace` changes an earlier job that has
-- not started. A unique index decides between transactions: the second waits for the first, and finds its job or its end.
CREATE FUNCTION baton.claim_unique_key(cluster integer, new_id bigint, spec baton.job_spec) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    earlier bigint;
    since timestamptz := clock_timestamp() - spec.unique_window;
BEGIN
    -- Read first, without a lock: a duplicate in a transaction that stays open must not hold up the end of the earlier job.
    SELECT u.job_id INTO earlier FROM baton.job_unique u
    WHERE u.cluster_id = cluster AND u.name = spec.name AND u.unique_key = spec.unique_key
      AND CASE WHEN spec.unique_window IS NULL THEN u.live ELSE u.submitted_at > since END;
    IF NOT FOUND THEN
        INSERT INTO baton.job_unique AS u (cluster_id, name, unique_key, job_id, expires_at)
        VALUES (cluster, spec.name, spec.unique_key, new_id, clock_timestamp() + spec.unique_window)
        -- Compared on the locked row: it may be newer than what this statement saw.
        ON CONFLICT (cluster_id, name, unique_key) DO UPDATE
        SET job_id = excluded.job_id, live = true, submitted_at = excluded.submitted_at, expires_at = excluded.expires_at
        WHERE NOT CASE WHEN spec.unique_window IS NULL THEN u.live ELSE u.submitted_at > since END;
        IF FOUND THEN
            RETURN new_id;
        END IF;
        SELECT u.job_id INTO earlier FROM baton.job_unique u
        WHERE u.cluster_id = cluster AND u.name = spec.name AND u.unique_key = spec.unique_key;
    END IF;
    -- The answer is what another transaction stored: not to be acknowledged before that is replicated.
    PERFORM baton.await_replication_at_commit();
    IF spec.on_conflict = 'reject' THEN
        RAISE unique_violation USING MESSAGE = format('job %s of %s has the same unique key', earlier, spec.name),
            DETAIL = earlier::text, CONSTRAINT = 'job_unique_pkey';
    ELSIF spec.on_conflict = 'replace' THEN
        UPDATE baton.job SET due_at = spec.due_at, priority = spec.priority
        WHERE job.id = earlier AND attempt = 0 AND state <> 'running';
        IF FOUND THEN
            UPDATE baton.job_body SET payload = spec.payload, content_type = spec.content_type WHERE job_body.id = earlier;
        END IF;
    END IF;
    RETURN earlier;
END $$;

-- Stores jobs, all or none; one row for each, in order. With the rights of the caller, who has checked the values; NULL is the
-- default of a field.
-- `wake`: the commit notifies the workers. `claimed_by`: a worker that starts those that are due itself.
CREATE FUNCTION baton.submit_jobs(cluster integer, specs baton.job_spec[], wake boolean, claimed_by bigint DEFAULT NULL)
RETURNS TABLE (place integer, job_id bigint, duplicate boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ids bigint[] := ARRAY (SELECT baton.next_run_id() FROM generate_series(1, cardinality(specs)));
    kept bigint[] := ids;   -- of each, the job that has its unique key
    one record;
    first integer;
BEGIN
    -- Ordered: two submissions of the same keys cannot deadlock.
    FOR one IN SELECT s.ordinality::integer AS n FROM unnest(specs) WITH ORDINALITY AS s
               WHERE s.unique_key IS NOT NULL ORDER BY s.name COLLATE "C", s.unique_key COLLATE "C", s.ordinality
    LOOP
        kept[one.n] := baton.claim_unique_key(cluster, ids[one.n], specs[one.n]);
    END LOOP;
    SELECT min(n) INTO first FROM generate_subscripts(ids, 1) AS n WHERE ids[n] = kept[n];
    INSERT INTO baton.job_body (id, payload, content_type, labels, attempts, retry_initial, retry_max, timeout)
    SELECT ids[s.ordinality], coalesce(s.payload, ''), coalesce(s.content_type, 'application/json'), nullif(s.labels, '{}'), s.attempts, s.retry_initial, s.retry_max, s.timeout
    FROM unnest(specs) WITH ORDINALITY AS s
    WHERE ids[s.ordinality] = kept[s.ordinality];
    INSERT INTO baton.job (id, due_at, expires_at, started_at, worker_id, cluster_id, attempt, priority, wake, state,
                           name, queue, key, unique_key, batch)
    SELECT ids[s.ordinality], coalesce(s.due_at, clock_timestamp()), s.expires_at, CASE WHEN new.state = 'running' THEN clock_timestamp() END,
        CASE WHEN new.state = 'running' THEN claimed_by END, cluster, (new.state = 'running')::integer,
        coalesce(s.priority, 3), wake AND s.ordinality = first, new.state, s.name, coalesce(s.queue, 'default'), s.key, s.unique_key, s.batch
    FROM unnest(specs) WITH ORDINALITY AS s,
    LATERAL (SELECT CASE
        WHEN s.key IS NOT NULL OR EXISTS (
            SELECT FROM baton.job_queue q
            WHERE q.cluster_id = cluster AND q.name = coalesce(s.queue, 'default') AND (q.cluster_max_running > 0 OR q.rate > 0)) THEN 'parked'
        WHEN claimed_by IS NOT NULL AND coalesce(s.due_at, '-infinity') <= clock_timestamp() THEN 'running'
        ELSE 'ready' END) AS new (state)
    WHERE ids[s.ordinality] = kept[s.ordinality];
    INSERT INTO baton.job_batch_count (cluster_id, batch, total)
    SELECT cluster, s.batch, count(*) FROM unnest(specs) WITH ORDINALITY AS s
    WHERE s.batch IS NOT NULL AND ids[s.ordinality] = kept[s.ordinality] GROUP BY s.batch;
    RETURN QUERY SELECT n, kept[n], ids[n] <> kept[n] FROM generate_subscripts(ids, 1) AS n ORDER BY n;
END $$;

-- ── wake-up ─────────────────────────────────────────────────────────────────────────────────────

-- Notifies the sidecars of the cluster when the submission commits. Deferred: the lock is held from the start of the commit
-- to its end and no longer. A commit that finds it taken does not notify and does not wait: commits with a NOTIFY are
-- serialized by Postgres. The workers look again shortly after every notification.
-- `SET baton_jobs.notify = off` submits without it: PREPARE TRANSACTION allows no NOTIFY.
CREATE FUNCTION baton.wake_workers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(current_setting('baton_jobs.notify', true), '') <> 'off'
       AND pg_try_advisory_xact_lock(TG_RELID::integer, NEW.cluster_id) THEN
        -- The channel of adapters/postgres/listener.py.
        PERFORM pg_notify('baton_' || left(encode(sha256(
            convert_to(TG_TABLE_SCHEMA, 'UTF8') || '\x00'::bytea || convert_to(name, 'UTF8')), 'hex'), 16), 'jobs')
        FROM baton.cluster WHERE cluster.id = NEW.cluster_id;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER job_wake AFTER INSERT ON baton.job DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.wake) EXECUTE FUNCTION baton.wake_workers();

-- ── the functions of users ──────────────────────────────────────────────────────────────────────

-- Raises invalid_parameter_value with the name of the argument unless `fits`.
CREATE FUNCTION baton.check_argument(name text, fits boolean, problem text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF fits IS NOT TRUE THEN
        RAISE invalid_parameter_value USING MESSAGE = name || ': ' || problem;
    END IF;
END $$;

CREATE FUNCTION baton.check_text(name text, value text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF octet_length(value) > 255 OR value = '' OR value ~ '[\x01-\x1f\x7f-\x9f]' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = name || ': must have 1 to 255 bytes and no control characters';
    END IF;
END $$;

CREATE FUNCTION baton.job_labels(labels jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF labels IS NULL OR labels = 'null' THEN
        RETURN NULL;
    END IF;
    PERFORM baton.check_argument('labels', jsonb_typeof(labels) = 'object', 'must be an object of texts');
    PERFORM baton.check_argument('labels', (SELECT count(*) <= 16 FROM jsonb_object_keys(labels)), 'at most 16');
    PERFORM baton.check_argument('labels', NOT EXISTS (
        SELECT FROM jsonb_each(labels) AS e
        WHERE octet_length(e.key) NOT BETWEEN 1 AND 255 OR jsonb_typeof(e.value) <> 'string'
           OR octet_length(e.value #>> '{}') > 255), 'keys must have 1 to 255 bytes, values be texts of at most 255 bytes');
    RETURN labels;
END $$;

-- Checks one job and fills in its defaults; raises invalid_parameter_value.
CREATE FUNCTION baton.job_spec_of(
    name text, payload jsonb, queue text, priority text, due_at timestamptz, delay interval, expires_at timestamptz,
    key text, unique_key text, unique_window interval, on_conflict text, attempts integer, timeout interval,
    labels jsonb, batch text, content_type text
) RETURNS baton.job_spec LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    spec baton.job_spec;
    level integer := array_position(ARRAY['critical', 'high', 'normal', 'low'], coalesce(priority, 'normal'));
    now timestamptz := clock_timestamp();
BEGIN
    PERFORM baton.check_argument('name', name IS NOT NULL, 'is missing');
    PERFORM baton.check_text('name', name), baton.check_text('queue', queue), baton.check_text('key', key),
        baton.check_text('unique_key', unique_key), baton.check_text('batch', batch),
        baton.check_text('content_type', content_type),
        baton.check_argument('priority', level IS NOT NULL, 'must be critical, high, normal or low'),
        baton.check_argument('due_at', due_at IS NULL OR delay IS NULL, 'give either due_at or delay'),
        baton.check_argument('due_at', due_at IS NULL OR due_at < '10000-01-01Z', 'is after the year 9999'),
        baton.check_argument('delay', delay IS NULL OR delay BETWEEN interval '0' AND interval '3660 days',
                             'must be 0 to ten years'),
        baton.check_argument('expires_at', expires_at IS NULL OR expires_at > '1970-01-01Z' AND expires_at < '10000-01-01Z',
                             'must be between 1970 and 9999'),
        baton.check_argument('unique_window', unique_window IS NULL OR unique_window > interval '0'
                             AND unique_window <= interval '3660 days', 'must be above zero and at most ten years'),
        baton.check_argument('on_conflict', coalesce(on_conflict, 'existing') IN ('existing', 'replace', 'reject'),
                             'must be existing, replace or reject'),
        baton.check_argument('attempts', attempts IS NULL OR attempts BETWEEN 1 AND 1000, 'must be 1 to 1,000'),
        baton.check_argument('timeout', timeout IS NULL OR timeout > interval '0' AND timeout <= interval '3660 days',
                             'must be above zero and at most ten years');
    spec.payload := coalesce(convert_to(payload::text, 'UTF8'), '');
    PERFORM baton.check_argument('payload', octet_length(spec.payload) <= 262144,
                                 format('has %s bytes; at most 262144', octet_length(spec.payload)));
    spec.name := name;
    spec.content_type := coalesce(content_type, 'application/json');
    spec.queue := coalesce(queue, 'default');
    spec.priority := level;
    spec.due_at := greatest(now, coalesce(due_at, now + delay));
    spec.expires_at := expires_at;
    spec.key := key;
    -- A window or a rule for conflicts without a key: the payload is the key.
    spec.unique_key := CASE WHEN unique_key IS NOT NULL THEN 'k:' || unique_key
        WHEN unique_window IS NOT NULL OR on_conflict IS NOT NULL THEN 'p:' || encode(sha256(spec.payload), 'hex') END;
    spec.unique_window := unique_window;
    spec.on_conflict := coalesce(on_conflict, 'existing');
    spec.attempts := attempts;
    spec.timeout := extract(epoch FROM timeout);
    spec.labels := baton.job_labels(labels);
    spec.batch := batch;
    RETURN spec;
END $$;

CREATE FUNCTION baton.cluster_id(cluster text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
    known integer := (SELECT c.id FROM baton.cluster c WHERE c.name = cluster);
BEGIN
    PERFORM baton.check_argument('cluster', known IS NOT NULL,
                                 format('%L is not known: no sidecar has joined it yet', coalesce(cluster, '')));
    RETURN known;
END $$;

-- Submits one job in the caller's transaction; returns its id, or that of the earlier job with the same unique key.
CREATE FUNCTION baton.enqueue(
    cluster text, name text, payload jsonb DEFAULT NULL, queue text DEFAULT NULL, priority text DEFAULT NULL,
    due_at timestamptz DEFAULT NULL, delay interval DEFAULT NULL, expires_at timestamptz DEFAULT NULL, key text DEFAULT NULL,
    unique_key text DEFAULT NULL, unique_window interval DEFAULT NULL, on_conflict text DEFAULT NULL,
    attempts integer DEFAULT NULL, timeout interval DEFAULT NULL, labels jsonb DEFAULT NULL, batch text DEFAULT NULL,
    content_type text DEFAULT NULL
) RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT job_id FROM baton.submit_jobs(baton.cluster_id(cluster), ARRAY[baton.job_spec_of(
        name, payload, queue, priority, due_at, delay, expires_at, key, unique_key, unique_window, on_conflict, attempts,
        timeout, labels, batch, content_type)], true)
$$;

-- Submits up to 1,000 jobs, all or none: objects whose keys are the arguments of baton.enqueue. One row per job, in order.
CREATE FUNCTION baton.enqueue_many(cluster text, jobs jsonb)
RETURNS TABLE (job_id bigint, duplicate boolean) LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    specs baton.job_spec[];
    wrong text;
BEGIN
    PERFORM baton.check_argument('jobs', jsonb_typeof(jobs) = 'array', 'must be an array of objects');
    PERFORM baton.check_argument('jobs', jsonb_array_length(jobs) BETWEEN 1 AND 1000, 'must be 1 to 1,000 jobs');
    PERFORM baton.check_argument('jobs', NOT EXISTS (
        SELECT FROM jsonb_array_elements(jobs) AS e WHERE jsonb_typeof(e) <> 'object'), 'must be an array of objects');
    SELECT k INTO wrong FROM jsonb_array_elements(jobs) AS e, jsonb_object_keys(e) AS k
    WHERE k NOT IN ('name', 'payload', 'queue', 'priority', 'due_at', 'delay', 'expires_at', 'key', 'unique_key',
        'unique_window', 'on_conflict', 'attempts', 'timeout', 'labels', 'batch', 'content_type') LIMIT 1;
    PERFORM baton.check_argument('jobs', wrong IS NULL, format('%L is not known', wrong));
    SELECT array_agg(baton.job_spec_of(
        e ->> 'name', e -> 'payload', e ->> 'queue', e ->> 'priority', (e ->> 'due_at')::timestamptz, (e ->> 'delay')::interval,
        (e ->> 'expires_at')::timestamptz, e ->> 'key', e ->> 'unique_key', (e ->> 'unique_window')::interval,
        e ->> 'on_conflict', (e ->> 'attempts')::integer, (e ->> 'timeout')::interval, e -> 'labels', e ->> 'batch',
        e ->> 'content_type') ORDER BY n)
    INTO specs FROM jsonb_array_elements(jobs) WITH ORDINALITY AS s (e, n);
    RETURN QUERY SELECT s.job_id, s.duplicate FROM baton.submit_jobs(baton.cluster_id(cluster), specs, true) AS s ORDER BY s.place;
END $$;
