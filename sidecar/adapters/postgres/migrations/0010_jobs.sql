-- Jobs: background work that any worker executes.
--
-- A job is in exactly one place: `job` while it is live, `job_ended` once it succeeded or was skipped, `job_dead` while it is
-- a dead letter. One statement moves it, so it has one outcome (G13).

-- ── workers ─────────────────────────────────────────────────────────────────────────────────────

-- One row per worker lease. The id is the fencing token: unique, and higher than that of every earlier lease. Written when
-- the lease begins and when it is fenced, never by a beat: every claim and completion locks this row FOR SHARE.
CREATE TABLE baton.worker (
    id          bigint PRIMARY KEY DEFAULT baton.next_run_id(),
    cluster_id  integer NOT NULL,
    runner_id   text NOT NULL,
    host        text NOT NULL DEFAULT '',
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    fenced_at   timestamptz,                   -- its jobs are being returned; the row is deleted after the last one
    fenced_by   text NOT NULL DEFAULT ''
);
CREATE INDEX worker_by_cluster ON baton.worker (cluster_id, id);

-- The worker's heartbeat, apart from `worker`: in one row, a beat would wait behind every completion.
CREATE TABLE baton.worker_beat (
    worker_id   bigint PRIMARY KEY,
    cluster_id  integer NOT NULL,
    sequence    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX worker_beat_by_cluster ON baton.worker_beat (cluster_id, worker_id);

-- ── live jobs ───────────────────────────────────────────────────────────────────────────────────

-- Live jobs only, and narrow: payload, labels and limits are in `job_body`. References nothing.
CREATE TABLE baton.job (
    id                bigint PRIMARY KEY,       -- baton.next_run_id(): begins with the time of submission
    due_at            timestamptz NOT NULL,     -- the next attempt
    expires_at        timestamptz,              -- not started by then: skipped
    started_at        timestamptz,              -- of the current or last attempt
    worker_id         bigint,                   -- set while it runs
    cluster_id        integer NOT NULL,
    attempt           integer NOT NULL DEFAULT 0,    -- deliveries; never falls
    attempts_free     integer NOT NULL DEFAULT 0,    -- of them, those that never reached a handler
    failures          integer NOT NULL DEFAULT 0,    -- retries used, plus one
    checkpoint_count  integer NOT NULL DEFAULT 0,
    checkpoint_bytes  integer NOT NULL DEFAULT 0,
    rescues           smallint NOT NULL DEFAULT 0,   -- taken back from a worker that was fenced
    priority          smallint NOT NULL CHECK (priority BETWEEN 1 AND 4),  -- critical, high, normal, low
    admitted          boolean NOT NULL DEFAULT false,  -- it was parked, and the leader let it start
    wake              boolean NOT NULL DEFAULT false,  -- the commit of its submission notifies the workers
    -- parked: its key or the limits of its queue hold it back until the leader admits it.
    state             text NOT NULL CHECK (state IN ('parked', 'ready', 'running')),
    name              text COLLATE "C" NOT NULL,
    queue             text COLLATE "C" NOT NULL,
    key               text COLLATE "C",
    unique_key        text COLLATE "C",         -- its row in job_unique
    batch             text COLLATE "C",
    cancel_note       text,                     -- somebody asks for its end
    error             text,                     -- of the last attempt
    progress          double precision,
    progress_message  text,
    history           jsonb,                    -- failed, rescued and snoozed attempts; NULL: none
    CHECK ((state = 'running') = (worker_id IS NOT NULL))
) WITH (
    -- Every job dies here within seconds: vacuum by number, at full speed.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000
);
CREATE INDEX job_due ON baton.job (cluster_id, queue, priority, due_at, id) WHERE state = 'ready';
-- Rescue. A completion must not use it: it would read the dead entries of all that the worker has completed.
CREATE INDEX job_by_worker ON baton.job (worker_id) WHERE state = 'running';
-- The others hold few jobs: keyed ones, limited ones, those that expire or are being cancelled.
CREATE INDEX job_parked ON baton.job (cluster_id, queue, priority, due_at) WHERE state = 'parked';
CREATE INDEX job_by_key ON baton.job (cluster_id, name, key, id) WHERE key IS NOT NULL;
CREATE INDEX job_admitted ON baton.job (cluster_id, queue) WHERE admitted;
CREATE INDEX job_expiring ON baton.job (cluster_id, expires_at) WHERE expires_at IS NOT NULL AND attempt = 0;
CREATE INDEX job_cancelled ON baton.job (worker_id) WHERE cancel_note IS NOT NULL;

-- What a live job carries, and an ended one for as long as `jobs.keep`. By id, which is by the day of submission.
CREATE TABLE baton.job_body (
    id             bigint NOT NULL PRIMARY KEY,
    payload        bytea NOT NULL,
    content_type   text NOT NULL DEFAULT 'application/json',
    labels         jsonb,                      -- NULL: none
    attempts       integer,                    -- NULL here and below: that of the queue, else the default
    retry_initial  double precision,           -- seconds
    retry_max      double precision,
    timeout        double precision
) PARTITION BY RANGE (id);
CREATE TABLE baton.job_body_rest PARTITION OF baton.job_body DEFAULT;

-- Results of steps, in the order of storing.
CREATE TABLE baton.job_checkpoint (
    job_id  bigint NOT NULL,
    seq     integer NOT NULL,
    step    text NOT NULL,
    value   bytea NOT NULL,
    PRIMARY KEY (job_id, step)
);

-- ── jobs that ended ─────────────────────────────────────────────────────────────────────────────

-- Succeeded, skipped, or failed and discarded. Insert-only; a day is dropped at once.
CREATE TABLE baton.job_ended (
    id           bigint NOT NULL,
    finished_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at       timestamptz NOT NULL,
    expires_at   timestamptz,
    started_at   timestamptz,
    cluster_id   integer NOT NULL,
    attempt      integer NOT NULL,
    failures     integer NOT NULL,
    rescues      smallint NOT NULL,
    priority     smallint NOT NULL,
    outcome      text NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'skipped')),
    reason       text CHECK (reason IN ('operator', 'expired', 'app_declined')),
    name         text COLLATE "C" NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    key          text COLLATE "C",
    batch        text COLLATE "C",
    runner_id    text,
    error        text,
    result       bytea,
    history      jsonb,
    PRIMARY KEY (id, finished_at),
    CHECK ((outcome = 'skipped') = (reason IS NOT NULL))
) PARTITION BY RANGE (finished_at);
CREATE TABLE baton.job_ended_rest PARTITION OF baton.job_ended DEFAULT;
CREATE INDEX job_ended_recently ON baton.job_ended USING brin (finished_at);
CREATE INDEX job_ended_batch ON baton.job_ended (cluster_id, batch) WHERE batch IS NOT NULL;

-- Failed for good: kept with everything a replay needs until it is replayed or discarded.
CREATE TABLE baton.job_dead (
    id                bigint PRIMARY KEY,
    finished_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at            timestamptz NOT NULL,
    expires_at        timestamptz,
    started_at        timestamptz,
    cluster_id        integer NOT NULL,
    attempt           integer NOT NULL,
    attempts_free     integer NOT NULL,
    failures          integer NOT NULL,
    checkpoint_count  integer NOT NULL,
    checkpoint_bytes  integer NOT NULL,
    rescues           smallint NOT NULL,
    priority          smallint NOT NULL,
    name              text COLLATE "C" NOT NULL,
    queue             text COLLATE "C" NOT NULL,
    key               text COLLATE "C",
    batch             text COLLATE "C",
    runner_id         text,
    error             text,
    error_code        text,
    history           jsonb,
    payload           bytea NOT NULL,
    content_type      text NOT NULL,
    labels            jsonb,
    attempts          integer,
    retry_initial     double precision,
    retry_max         double precision,
    timeout           double precision
);
CREATE INDEX job_dead_by_cluster ON baton.job_dead (cluster_id, id);

-- ── uniqueness, queues, batches, requests ───────────────────────────────────────────────────────

-- Which job has a unique key. Without a window the row lives as long as the job. With one it stays until `expires_at`.
CREATE TABLE baton.job_unique (
    cluster_id    integer NOT NULL,
    name          text COLLATE "C" NOT NULL,
    unique_key    text COLLATE "C" NOT NULL,   -- 'k:' and the key, or 'p:' and the digest of the payload
    job_id        bigint NOT NULL,
    live          boolean NOT NULL DEFAULT true,
    submitted_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz,
    PRIMARY KEY (cluster_id, name, unique_key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_unique_expiring ON baton.job_unique (expires_at) WHERE expires_at IS NOT NULL;

-- What is known of a queue: settings from the configuration, and a pause. A queue without a row has no limits.
CREATE TABLE baton.job_queue (
    cluster_id           integer NOT NULL,
    name                 text COLLATE "C" NOT NULL,
    paused               boolean NOT NULL DEFAULT false,
    pause_note           text NOT NULL DEFAULT '',
    max_running          integer NOT NULL DEFAULT 0,           -- per pod; 0: no limit, here and below
    cluster_max_running  integer NOT NULL DEFAULT 0,
    per_key              integer NOT NULL DEFAULT 1,
    rate                 double precision NOT NULL DEFAULT 0,  -- starts per second
    attempts             integer,
    retry_initial        double precision,
    retry_max            double precision,
    timeout              double precision,
    PRIMARY KEY (cluster_id, name)
);

-- A batch that was closed, or has a job to submit when it is complete.
CREATE TABLE baton.job_batch (
    cluster_id         integer NOT NULL,
    batch              text COLLATE "C" NOT NULL,
    closed             boolean NOT NULL DEFAULT false,
    completed_at       timestamptz,
    completion_job_id  bigint,
    on_complete        jsonb,                  -- the job to submit: the fields of baton.job_spec; NULL: none
    changed_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (cluster_id, batch)
);

-- The counts of a batch are sums: a submission in a transaction that stays open must not hold up a completion.
CREATE TABLE baton.job_batch_count (
    cluster_id  integer NOT NULL,
    batch       text COLLATE "C" NOT NULL,
    total       bigint NOT NULL DEFAULT 0,
    succeeded   bigint NOT NULL DEFAULT 0,
    failed      bigint NOT NULL DEFAULT 0,
    skipped     bigint NOT NULL DEFAULT 0,
    counted_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX job_batch_count_by_batch ON baton.job_batch_count (cluster_id, batch);

-- What Jobs.Submit answered to a request_id, for a day.
CREATE TABLE baton.job_request (
    cluster_id    integer NOT NULL,
    request_id    text COLLATE "C" NOT NULL,
    digest        bytea NOT NULL,              -- of the jobs: the same id with other jobs is a mistake
    job_ids       bigint[] NOT NULL DEFAULT '{}',
    duplicates    boolean[] NOT NULL DEFAULT '{}',
    requested_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (cluster_id, request_id)
);
CREATE INDEX job_request_age ON baton.job_request (requested_at);

-- When a job or run with this id was submitted.
CREATE FUNCTION baton.id_time(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN to_timestamp(((id >> 22) + 1735689600000) / 1000.0);
-- The first id of this time or later.
CREATE FUNCTION baton.id_at(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(0, floor(extract(epoch FROM at) * 1000)::bigint - 1735689600000) << 22;
