-- schedules/config_apply: marks this file as applied. `again`: it counts as newly loaded, because no runner has the newer one.
UPDATE baton.config_load SET
    applied = (digest = %(digest)s AND revision = %(revision)s),
    first_loaded_at = CASE WHEN %(again)s AND digest = %(digest)s AND revision = %(revision)s
                           THEN clock_timestamp() ELSE first_loaded_at END
WHERE cluster_id = %(cluster_id)s AND source = %(source)s AND (applied OR (digest = %(digest)s AND revision = %(revision)s));
