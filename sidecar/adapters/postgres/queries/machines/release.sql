-- release: the runner ends; its number is free at once, from the time on that it did not use.
UPDATE baton.machine SET
    runner_id = '', ceiling_ms = %(used_ms)s,
    expires_at = clock_timestamp() - make_interval(secs => %(grace_seconds)s)
WHERE cluster_id = %(cluster_id)s AND number = %(number)s AND runner_id = %(runner_id)s;
