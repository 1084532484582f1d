-- deferreds/key: what the tokens of this installation are derived with.
SELECT key FROM baton.deferred_key
