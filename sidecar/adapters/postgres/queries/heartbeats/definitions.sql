-- definitions: what some schedules say about their timing.
SELECT id, version, name, definition FROM baton.schedule WHERE id = ANY (%(ids)s::bigint[]);
