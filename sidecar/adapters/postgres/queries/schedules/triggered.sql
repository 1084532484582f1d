-- schedules/triggered: the run that an earlier request with the same id created.
SELECT id FROM baton.run
WHERE cluster_id = %(cluster_id)s AND name = %(name)s AND request_id = %(request_id)s;
