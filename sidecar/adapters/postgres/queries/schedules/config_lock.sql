-- schedules/config_lock: one runner at a time applies its file.
SELECT 1 FROM baton.cluster WHERE id = %(cluster_id)s FOR NO KEY UPDATE;
