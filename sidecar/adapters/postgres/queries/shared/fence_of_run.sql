-- shared/fence_of_run: shared/fence for callers that know the runs (`ref`), not their group. All runs of `ref` belong
-- to one group: that of the first run of this term.
-- = ANY (ARRAY …): by primary key, whatever the planner believes.
SELECT group_id FROM baton.term
WHERE epoch = %(epoch)s AND group_id = (
    SELECT group_id FROM baton.run
    WHERE id = ANY (ARRAY (SELECT run_id FROM ref)) AND cluster_id = %(cluster_id)s AND epoch = %(epoch)s
    ORDER BY id LIMIT 1)
FOR SHARE
