-- A condition on a job `j` of any table, by those parameters of JobFilter that all tables have. An id begins with the time.
AND (%(ids)s::bigint[] IS NULL OR j.id = ANY (%(ids)s::bigint[]))
AND (%(before)s::bigint IS NULL OR j.id < %(before)s)
AND (%(since)s::timestamptz IS NULL OR j.id >= baton.id_at(%(since)s))
AND (%(until)s::timestamptz IS NULL OR j.id < baton.id_at(%(until)s))
AND (%(queue)s::text IS NULL OR j.queue = %(queue)s)
AND (%(name)s::text IS NULL OR j.name = %(name)s)
AND (%(key)s::text IS NULL OR j.key = %(key)s)
AND (%(batch)s::text IS NULL OR j.batch = %(batch)s)
