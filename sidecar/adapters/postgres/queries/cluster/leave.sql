-- cluster/leave: deletes the row of a runner that shuts down, so that others need not wait for it to age.
DELETE FROM baton.runner WHERE runner_id = %(runner_id)s;
