"""procrastinate: a task queue in Postgres whose periodic tasks need no leader."""
