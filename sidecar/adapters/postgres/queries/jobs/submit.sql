-- jobs/submit: stores jobs; one row for each, in order.
SELECT s.job_id, s.duplicate FROM baton.submit_jobs(%(cluster_id)s, ARRAY (
    SELECT (name, payload, content_type, queue, priority,
            greatest(clock_timestamp(), coalesce(due_at, clock_timestamp() + make_interval(secs => delay))), expires_at,
            key, unique_key, make_interval(secs => unique_window), on_conflict, attempts, retry_initial, retry_max, timeout,
            labels::jsonb, batch)::baton.job_spec
    FROM unnest(
        %(names)s::text[], %(payloads)s::bytea[], %(content_types)s::text[], %(queues)s::text[], %(priorities)s::smallint[],
        %(dues)s::timestamptz[], %(delays)s::float8[], %(expires)s::timestamptz[], %(keys)s::text[], %(unique_keys)s::text[],
        %(unique_windows)s::float8[], %(on_conflicts)s::text[], %(attempts)s::integer[], %(retry_initials)s::float8[],
        %(retry_maxes)s::float8[], %(timeouts)s::float8[], %(labels)s::text[], %(batches)s::text[]
    ) WITH ORDINALITY AS j (name, payload, content_type, queue, priority, due_at, delay, expires_at, key, unique_key,
        unique_window, on_conflict, attempts, retry_initial, retry_max, timeout, labels, batch, place)
    ORDER BY place), false) AS s
ORDER BY s.place;
