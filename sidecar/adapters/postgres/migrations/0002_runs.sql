-- Schedules and runs: every tick has exactly one outcome.

-- When something runs. A retired schedule keeps its row, and with it its watermark.
CREATE TABLE baton.schedule (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id    integer NOT NULL REFERENCES baton.cluster (id),
    group_id      integer NOT NULL REFERENCES baton.leader_group (id),
    name          text NOT NULL,
    source        text NOT NULL CHECK (source IN ('config', 'api')),
    definition    jsonb NOT NULL,                 -- every key but name, group and payload
    payload       bytea NOT NULL DEFAULT '',
    paused        boolean NOT NULL DEFAULT false,
    pause_note    text NOT NULL DEFAULT '',
    watermark     timestamptz NOT NULL,           -- every tick up to here has its row
    next_tick     timestamptz,                    -- the first tick after the watermark; NULL: there is none
    next_due_at   timestamptz,                    -- when the leader has to look at it next
    missed_total  bigint NOT NULL DEFAULT 0,      -- ticks ever skipped as misfire or coalesced
    version       bigint NOT NULL DEFAULT 1,      -- changes with every change but the claim of ticks
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    counted_from  timestamptz NOT NULL DEFAULT clock_timestamp(),  -- creation, resume or change: staleness counts from here
    retired_at    timestamptz,
    UNIQUE (cluster_id, name)
);
CREATE INDEX schedule_due ON baton.schedule (group_id, next_due_at)
    WHERE retired_at IS NULL AND next_due_at IS NOT NULL;

-- One execution. References nothing: a foreign key would lock the group's row for every tick.
CREATE TABLE baton.run (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id         integer NOT NULL,
    group_id           integer NOT NULL,
    kind               text NOT NULL CHECK (kind IN ('singleton', 'schedule', 'trigger')),
    name               text NOT NULL,
    schedule_id        bigint,                        -- NULL for a singleton
    tick               timestamptz NOT NULL,          -- due time; for a trigger or singleton, when it was begun
    tick_last          timestamptz,                   -- consecutive ticks skipped for one reason share a row
    tick_count         integer NOT NULL DEFAULT 1,
    request_id         text,
    overlap            text NOT NULL DEFAULT 'allow',
    backfill           boolean NOT NULL DEFAULT false,
    state              text NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'ended')),
    outcome            text CHECK (outcome IN ('succeeded', 'failed', 'skipped')),
    reason             text CHECK (reason IN
                           ('misfire', 'coalesced', 'overlap', 'paused', 'operator', 'app_declined')),
    due_at             timestamptz NOT NULL,          -- the next attempt is due
    attempt            integer NOT NULL DEFAULT 0,    -- deliveries; never falls
    attempts_free      integer NOT NULL DEFAULT 0,    -- of them, those that do not count towards the limit
    failures           integer NOT NULL DEFAULT 0,    -- retries used up, plus one
    epoch              bigint NOT NULL DEFAULT 0,     -- of the last attempt
    runner_id          text NOT NULL DEFAULT '',
    cancel_reason      text CHECK (cancel_reason IN ('operator', 'overlap')),
    cancel_note        text NOT NULL DEFAULT '',
    payload            bytea,                         -- given to Trigger; NULL: the schedule's
    result             bytea,
    error              text NOT NULL DEFAULT '',
    error_code         text NOT NULL DEFAULT '',
    progress           double precision NOT NULL DEFAULT 0,
    progress_message   text NOT NULL DEFAULT '',
    heartbeat_at       timestamptz,
    checkpoint_count   integer NOT NULL DEFAULT 0,
    checkpoint_bytes   integer NOT NULL DEFAULT 0,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    queued_at          timestamptz NOT NULL DEFAULT clock_timestamp(),  -- of this life: Retry begins a new one
    started_at         timestamptz,                   -- of the first attempt
    attempt_started_at timestamptz,
    finished_at        timestamptz,
    history            jsonb NOT NULL DEFAULT '[]',
    CHECK ((state = 'ended') = (outcome IS NOT NULL)),
    CHECK ((state = 'ended') = (finished_at IS NOT NULL)),
    CHECK ((outcome IS NOT DISTINCT FROM 'skipped') = (reason IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

CREATE UNIQUE INDEX run_tick ON baton.run (cluster_id, name, tick) WHERE kind = 'schedule';
CREATE UNIQUE INDEX run_request ON baton.run (cluster_id, name, request_id) WHERE request_id IS NOT NULL;
-- What the leader asks again and again concerns live runs only: history costs it nothing.
CREATE INDEX run_due ON baton.run (group_id, due_at, id) WHERE state IN ('queued', 'waiting');
CREATE INDEX run_contended ON baton.run (group_id, due_at) WHERE state IN ('queued', 'waiting') AND overlap <> 'allow';
CREATE INDEX run_running ON baton.run (group_id, epoch) WHERE state = 'running';
CREATE INDEX run_live ON baton.run (schedule_id) WHERE state <> 'ended';
-- Lists, newest first.
CREATE INDEX run_by_cluster ON baton.run (cluster_id, id);
CREATE INDEX run_by_name ON baton.run (cluster_id, name, id);
CREATE INDEX run_by_outcome ON baton.run (cluster_id, outcome, id) WHERE outcome IN ('failed', 'skipped');
-- Pruning.
CREATE INDEX run_ended ON baton.run (group_id, finished_at) WHERE state = 'ended';

-- A named step of a run whose result is stored, in the order of storing.
CREATE TABLE baton.checkpoint (
    run_id   bigint NOT NULL REFERENCES baton.run (id) ON DELETE CASCADE,
    seq      integer NOT NULL,
    step     text NOT NULL,
    value    bytea NOT NULL,
    PRIMARY KEY (run_id, step)
);

-- What the system remembers of the executions of one singleton or schedule.
CREATE TABLE baton.execution (
    cluster_id       integer NOT NULL,
    entity_type      text NOT NULL CHECK (entity_type IN ('singleton', 'schedule')),
    name             text NOT NULL,
    last_run_at      timestamptz,
    last_success_at  timestamptz,
    run_count        bigint NOT NULL DEFAULT 0,
    last_error       text NOT NULL DEFAULT '',
    missed_seen      bigint NOT NULL DEFAULT 0,       -- schedule.missed_total as of the last run
    average_seconds  double precision,
    last_seconds     double precision,
    heartbeat_at     timestamptz,
    PRIMARY KEY (cluster_id, entity_type, name)
) WITH (fillfactor = 50);

-- Which files of configuration were seen, when first, and when last: orders old and new in a rollout.
CREATE TABLE baton.config_load (
    cluster_id       integer NOT NULL REFERENCES baton.cluster (id),
    digest           text NOT NULL,
    revision         bigint NOT NULL,
    first_loaded_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied          boolean NOT NULL DEFAULT false,   -- at most one per cluster
    PRIMARY KEY (cluster_id, digest, revision)
);

-- One more change of state at the end of a run's history. An old event in the middle makes room: a run
-- that waits for an app for days must not grow without limit. What is no list is begun anew.
CREATE FUNCTION baton.run_event(
    history jsonb, state text, outcome text, attempt integer, epoch bigint, runner_id text, cause text
) RETURNS jsonb LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN jsonb_typeof(history) <> 'array' THEN '[]'
                WHEN jsonb_array_length(history) >= 100 THEN history - 50 ELSE history END
        || jsonb_build_object('at', clock_timestamp(), 'state', state, 'outcome', outcome, 'attempt', attempt,
                              'epoch', epoch, 'runner_id', runner_id, 'cause', cause)
$$;
