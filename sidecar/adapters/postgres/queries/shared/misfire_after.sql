-- shared/misfire_after: how late a tick of `schedule` may start: `skip_if_older_than`, or what `catch_up: none` allows,
-- whichever is shorter. Without either, and in a damaged definition, 300 years: ticks never misfire.
make_interval(secs => greatest(0, least(1e10,
    CASE WHEN jsonb_typeof(definition -> 'skip_if_older_than_seconds') = 'number'
         THEN (definition -> 'skip_if_older_than_seconds')::numeric END,
    CASE WHEN definition ->> 'catch_up' = 'none' THEN %(none_seconds)s::numeric END))::double precision)
