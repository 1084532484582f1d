-- shared/may_misfire: only a tick that was never started can misfire: not a retry, a trigger or a backfill.
run.kind = 'schedule' AND run.attempt = 0 AND NOT run.backfill
