-- Which of these names has the API still? Asked without a lock: the leader's ticks wait for nobody who only looks.
SELECT name FROM baton.schedule
WHERE cluster_id = %(cluster_id)s AND name = ANY (%(names)s::text[]) AND source = 'api' AND retired_at IS NULL;
