-- shared/fence: one row if %(epoch)s is the group's current term.
-- FOR SHARE: a takeover that is under way commits first, and this finds no row; or it waits for this statement.
SELECT group_id FROM baton.term WHERE group_id = %(group_id)s AND epoch = %(epoch)s FOR SHARE
