-- The groups that a runner's file names. NULL: a release that does not say; it may have any of them.
ALTER TABLE baton.runner ADD COLUMN group_ids integer[];
