-- schedules/config_prune: deletes files that no runner has any more.
DELETE FROM baton.config_load
WHERE cluster_id = %(cluster_id)s AND source = %(source)s AND NOT applied
  AND seen_at < clock_timestamp() - make_interval(secs => %(keep_seconds)s);
