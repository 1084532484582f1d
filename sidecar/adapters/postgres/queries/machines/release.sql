-- machines/release: frees the number of a runner that shuts down; the time that it did not use can be reused.
UPDATE baton.machine SET
    runner_id = '', ceiling_ms = %(used_ms)s,
    expires_at = clock_timestamp() - make_interval(secs => %(grace_seconds)s)
WHERE cluster_id = %(cluster_id)s AND number = %(number)s AND runner_id = %(runner_id)s;
