-- heartbeats/definitions: definitions from which expected intervals are computed.
SELECT id, version, name, definition FROM baton.schedule WHERE id = ANY (%(ids)s::bigint[]);
