"""Postgres, the truth: the lock session, the pool, the listener, migrations and every query."""
