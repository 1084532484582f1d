-- The run that an earlier request of the same id made.
SELECT id FROM baton.run
WHERE cluster_id = %(cluster_id)s AND name = %(name)s AND request_id = %(request_id)s;
