-- notify: sent after the unlock; otherwise the runners that it wakes would find the lock still held.
SELECT pg_notify(%(channel)s, %(payload)s);
