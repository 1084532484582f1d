-- notify: only after the lock is free, or whoever is woken finds it still taken.
SELECT pg_notify(%(channel)s, %(payload)s);
