-- state/get: the entries of many keys, including tombstones; a state_version of NULL means the newest.
SELECT i.ordinal, s.version, s.updated_at, s.expires_at, statement_timestamp() AS as_of,
       CASE WHEN s.expires_at <= clock_timestamp() THEN NULL ELSE s.value END AS value
FROM unnest(%(keys)s::text[], %(state_versions)s::integer[]) WITH ORDINALITY AS i (key, state_version, ordinal)
LEFT JOIN LATERAL (
    SELECT o.version, o.updated_at, o.expires_at, o.value
    FROM baton.state o
    WHERE o.cluster_id = %(cluster_id)s AND o.key = i.key
      AND (i.state_version IS NULL OR o.state_version = i.state_version)
    ORDER BY o.state_version DESC LIMIT 1
) s ON true
