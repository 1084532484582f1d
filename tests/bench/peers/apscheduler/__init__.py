"""APScheduler: version 3 with a job store in Postgres, and the alpha of version 4."""
