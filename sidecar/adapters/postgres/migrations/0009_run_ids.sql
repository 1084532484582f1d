-- Ids of runs that do not come back, neither after a failover that lost the last ones nor after a restore.

-- The counter of the identity column is as old as the copy of the database that a failover or a restore ends up with: it
-- would give out ids again that were given out before, for other runs. So the time comes first: milliseconds since
-- 2025-01-01 in 41 bits, as in the ids of Ids.Generate, and then the lowest 22 bits of a counter. While the clock is
-- set back an id repeats only if the counter has gone round, after four million runs; and the primary key refuses it.
CREATE SEQUENCE baton.run_number;
-- An identity column needs no right on its sequence, a default does, and roles that may insert runs were granted tables
-- only. USAGE is nextval and no more: whoever calls it leaves a gap.
GRANT USAGE ON SEQUENCE baton.run_number TO PUBLIC;

-- Inlined by the planner: a body of SECURITY DEFINER costs ten times as much per row.
-- least and greatest: an id is positive also with a clock that is decades off.
CREATE FUNCTION baton.next_run_id() RETURNS bigint LANGUAGE sql VOLATILE
RETURN (greatest(0, least(2199023255551, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - 1735689600000)) << 22)
    | (nextval('baton.run_number') & 4194303);

-- A default, so that a sidecar of an older release, which inserts runs without an id too, gets the same ones.
ALTER TABLE baton.run ALTER COLUMN id DROP IDENTITY;
ALTER TABLE baton.run ALTER COLUMN id SET DEFAULT baton.next_run_id();
