-- state/get_one: state/get for a single key; there is always a row, for the time.
SELECT s.version, s.updated_at, s.expires_at, statement_timestamp() AS as_of,
       CASE WHEN s.expires_at <= clock_timestamp() THEN NULL ELSE s.value END AS value
FROM (VALUES (1)) AS always (one)
LEFT JOIN LATERAL (
    SELECT o.version, o.updated_at, o.expires_at, o.value
    FROM baton.state o
    WHERE o.cluster_id = %(cluster_id)s AND o.key = %(key)s
      AND (%(state_version)s::integer IS NULL OR o.state_version = %(state_version)s)
    ORDER BY o.state_version DESC LIMIT 1
) s ON true
