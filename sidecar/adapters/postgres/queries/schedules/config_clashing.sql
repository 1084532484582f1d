-- schedules/config_clashing: which of these names belong to schedules of other sources. Without a lock: no tick has to wait.
SELECT name FROM baton.schedule
WHERE cluster_id = %(cluster_id)s AND name = ANY (%(names)s::text[]) AND source = ANY (%(sources)s::text[]) AND retired_at IS NULL;
