-- unlock: sent after the release was committed.
SELECT pg_advisory_unlock(%(lock_class)s, %(group_id)s);
