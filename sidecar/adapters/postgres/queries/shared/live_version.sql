-- shared/live_version: the version that a caller sees of the entry `s`: 0 if it was deleted or has expired.
CASE WHEN s.value IS NULL OR s.expires_at <= clock_timestamp() THEN 0 ELSE s.version END
