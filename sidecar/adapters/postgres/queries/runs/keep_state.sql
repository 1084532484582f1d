-- runs/keep_state: writes the state that a run returned, in the transaction that completes the run.
-- At least 90 s to live: the entry must not expire between two heartbeats of the leader.
WITH item AS NOT MATERIALIZED (
    SELECT %(key)s::text AS key, %(state_version)s::integer AS state_version,
           -- The versions of a key increase across its state_versions.
           (SELECT max(o.version) + 1 FROM baton.state o
            WHERE o.cluster_id = %(cluster_id)s AND o.key = %(key)s) AS version_min,
           %(value)s::bytea AS value, NULL::bigint AS expected,
           CASE WHEN %(ttl)s::interval IS NOT NULL THEN greatest(%(ttl)s::interval, interval '90 s') END AS ttl
)
-- include: put_state
