-- session: whether the server accepts writes, and the class of the advisory locks of this installation.
SELECT pg_is_in_recovery() AS in_recovery,
       current_setting('transaction_read_only') = 'on' AS read_only,
       hashtext(format('baton:%%s:%%s', (SELECT relnamespace FROM pg_class WHERE oid = 'baton.meta'::regclass),
                       installation_id)) AS lock_class
FROM baton.meta;
