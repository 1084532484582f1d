-- The `expected_interval` of a singleton as of its last heartbeat, and since when: one that is held to it from now on is
-- not late at once. NULL: of a schedule, or written by a release that does not say.
ALTER TABLE baton.execution ADD COLUMN expected_seconds double precision, ADD COLUMN expected_since timestamptz;
