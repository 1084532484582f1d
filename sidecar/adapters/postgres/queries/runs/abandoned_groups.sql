-- runs/abandoned_groups: groups that no live runner has configured and nobody leads, each with its last epoch.
-- A runner counts while its row exists: until it leaves, or for an hour after its last heartbeat. A runner of an older
-- release, which does not list its groups, may have any. The lock is the one of election/session.
SELECT leader_group.name, leader_group.id, term.epoch
FROM baton.leader_group JOIN baton.term ON term.group_id = leader_group.id
WHERE leader_group.cluster_id = %(cluster_id)s AND leader_group.id <> ALL (%(mine)s::integer[])
  AND NOT EXISTS (
      SELECT FROM baton.runner
      WHERE runner.cluster_id = leader_group.cluster_id
        AND (runner.group_ids IS NULL OR leader_group.id = ANY (runner.group_ids)))
  AND NOT EXISTS (
      SELECT FROM pg_locks AS locks, baton.meta
      WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 2
        AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND locks.classid = hashtext(format('baton:%%s:%%s',
            (SELECT relnamespace FROM pg_class WHERE oid = 'baton.meta'::regclass),
            meta.installation_id))::bit(32)::bigint::oid
        AND locks.objid = leader_group.id::oid)
ORDER BY leader_group.id;
