-- What people look at: terms of the past, when each step was stored, whether the app of a runner is healthy.

-- One row per term, written by the lock session at takeover and release, never by a ping. The successor ends the
-- row of a leader that could not: `lost`. The takeover keeps the newest thousand of a group.
CREATE TABLE baton.term_history (
    group_id   integer NOT NULL,
    epoch      bigint NOT NULL,
    runner_id  text NOT NULL,
    host       text NOT NULL,
    taken_at   timestamptz NOT NULL,
    ended_at   timestamptz,                 -- NULL: it has not ended, or nobody has taken over yet
    why        text NOT NULL DEFAULT '',    -- of a clean release, its reason; `lost`
    PRIMARY KEY (group_id, epoch)
);

-- NULL: stored before this migration. The default is set apart: with it the first statement would write every row.
ALTER TABLE baton.checkpoint ADD COLUMN stored_at timestamptz, ADD COLUMN attempt integer;
ALTER TABLE baton.checkpoint ALTER COLUMN stored_at SET DEFAULT clock_timestamp();

-- NULL: a release that does not say.
ALTER TABLE baton.runner ADD COLUMN healthy boolean;

-- The first id that a run of this time can have; of times before 2025, zero.
CREATE FUNCTION baton.run_id_at(at timestamptz) RETURNS bigint LANGUAGE sql STABLE
RETURN greatest(0, least(2199023255551, floor(date_part('epoch', at) * 1000)::bigint - 1735689600000)) << 22;
