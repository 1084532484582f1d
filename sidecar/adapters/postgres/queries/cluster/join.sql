-- cluster/join: the cluster's id; the first app that joins sets the app name.
INSERT INTO baton.cluster AS cluster (name, app_name) VALUES (%(cluster)s, %(app_name)s)
ON CONFLICT (name) DO UPDATE SET
    app_name = CASE WHEN cluster.app_name = '' THEN excluded.app_name ELSE cluster.app_name END
RETURNING id, app_name;
