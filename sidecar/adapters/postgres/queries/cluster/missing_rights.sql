-- cluster/missing_rights: our tables that this role lacks a privilege on.
-- Only tables of the owner of `meta`: other tables in the schema are not ours.
SELECT current_user AS role, ours.relname AS table_name
FROM pg_class AS ours
JOIN pg_class AS meta ON meta.oid = 'baton.meta'::regclass
                     AND meta.relnamespace = ours.relnamespace AND meta.relowner = ours.relowner
WHERE ours.relkind IN ('r', 'p') AND NOT ours.relispartition  -- a partition is used through its parent
  AND NOT (has_table_privilege(ours.oid, 'SELECT')
           AND (ours.relname IN ('meta', 'deferred_key')
                OR (has_table_privilege(ours.oid, 'INSERT')
                    AND has_table_privilege(ours.oid, 'UPDATE')
                    AND has_table_privilege(ours.oid, 'DELETE'))))
ORDER BY ours.relname;
