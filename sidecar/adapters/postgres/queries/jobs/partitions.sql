-- jobs/partitions: makes the partitions of the next days and drops old ones.
SELECT baton.job_partitions(make_interval(secs => %(keep_seconds)s)) AS done;
