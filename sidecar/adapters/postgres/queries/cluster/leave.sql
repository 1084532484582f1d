-- leave: this runner has ended; nobody needs to wait for its row to age.
DELETE FROM baton.runner WHERE runner_id = %(runner_id)s;
