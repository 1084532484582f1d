-- cluster/schema_version: the version of the tables, and the id of this installation.
SELECT schema_version, oldest_reader, installation_id::text AS installation_id FROM baton.meta;
