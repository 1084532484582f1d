-- A repeated request is answered from what the first one stored, and writes nothing.

-- Makes the commit of this transaction wait for the synchronous standbys, as if it had written something. Postgres
-- lets a commit that wrote no WAL wait for no standby. But what such a transaction found may be on this server alone:
-- the wait of whoever wrote it was cancelled, or ended by a crash of the server. Every statement that acknowledges
-- what it found calls this, in the same transaction: then all that was committed before is replicated too.
-- A transactional message takes a transaction id and writes WAL, and changes no row. (A statement that locks a row has
-- done both already.)
CREATE FUNCTION baton.await_replication_at_commit() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT pg_logical_emit_message(true, 'baton', '') IS NOT NULL
$$;
