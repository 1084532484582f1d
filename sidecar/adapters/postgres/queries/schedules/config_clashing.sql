-- schedules/config_clashing: which of these names belong to schedules made by the API. Without a lock: no tick has to wait.
SELECT name FROM baton.schedule
WHERE cluster_id = %(cluster_id)s AND name = ANY (%(names)s::text[]) AND source = 'api' AND retired_at IS NULL;
