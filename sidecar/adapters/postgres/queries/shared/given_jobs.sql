-- The jobs of a submission: one row for each, `n` in the order of the arrays. Times are those of the database.
SELECT n, call, ROW(name, payload, content_type, queue, priority,
        greatest(clock_timestamp(), coalesce(due_at, clock_timestamp() + delay * interval '1 second')), expires_at,
        key, unique_key, unique_window * interval '1 second', on_conflict, attempts, retry_initial, retry_max, timeout,
        labels::jsonb, batch)::baton.job_spec AS spec, batch
FROM unnest(%(calls)s::integer[], %(names)s::text[], %(payloads)s::bytea[], %(content_types)s::text[], %(queues)s::text[],
        %(priorities)s::smallint[], %(dues)s::timestamptz[], %(delays)s::float8[], %(expires)s::timestamptz[],
        %(keys)s::text[], %(unique_keys)s::text[], %(unique_windows)s::float8[], %(on_conflicts)s::text[],
        %(attempts)s::integer[], %(retry_initials)s::float8[], %(retry_maxes)s::float8[], %(timeouts)s::float8[],
        %(labels)s::text[], %(batches)s::text[]) WITH ORDINALITY AS g (call, name, payload, content_type, queue, priority,
        due_at, delay, expires_at, key, unique_key, unique_window, on_conflict, attempts, retry_initial, retry_max, timeout,
        labels, batch, n)
