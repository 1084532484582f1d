-- hints/notify: sends all pending hints in one round trip, outside any other transaction.
SELECT pg_notify(%(channel)s, payload) FROM unnest(%(payloads)s::text[]) AS payload;
