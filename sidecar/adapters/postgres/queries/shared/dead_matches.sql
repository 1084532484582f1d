-- A condition on a dead letter `j`, by the parameters of JobFilter.
AND (%(state)s::text IS NULL OR %(state)s = 'ended') AND (%(outcome)s::text IS NULL OR %(outcome)s = 'failed')
AND (%(error_contains)s::text IS NULL OR position(%(error_contains)s IN j.error) > 0)
AND (%(labels)s::jsonb IS NULL OR j.labels @> %(labels)s::jsonb)
-- include: job_matches
