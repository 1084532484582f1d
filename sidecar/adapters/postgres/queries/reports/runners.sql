-- reports/runners: a page of the registry, with the groups that each runner leads.
SELECT runner.runner_id, runner.host, runner.version, runner.healthy, runner.campaigning, runner.config_revision,
    runner.started_at, runner.seen_at,
    runner.seen_at > clock_timestamp() - make_interval(secs => %(alive_seconds)s) AS alive,
    ARRAY (SELECT leader_group.name FROM baton.term JOIN baton.leader_group ON leader_group.id = term.group_id
           WHERE leader_group.cluster_id = runner.cluster_id AND term.runner_id = runner.runner_id AND NOT term.clean
           ORDER BY leader_group.name) AS leads
FROM baton.runner
WHERE runner.cluster_id = %(cluster_id)s AND runner.runner_id > %(after)s
  AND runner.seen_at > clock_timestamp() - interval '1 hour'
ORDER BY runner.runner_id LIMIT %(limit)s;
