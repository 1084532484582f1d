-- shared/triggers_full: whether as many triggered runs of the group of `target` wait as may: more would delay its ticks,
-- which start in the order of their due times.
(SELECT count(*) FROM (
    SELECT FROM baton.run
    WHERE run.group_id = target.group_id AND run.state IN ('queued', 'waiting') AND run.kind = 'trigger'
      AND run.due_at <= (SELECT clock_timestamp())
    LIMIT %(queued_max)s) AS waiting) >= %(queued_max)s
