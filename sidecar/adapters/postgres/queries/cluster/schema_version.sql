-- schema_version: which tables are these?
SELECT schema_version, oldest_reader, installation_id::text AS installation_id FROM baton.meta;
