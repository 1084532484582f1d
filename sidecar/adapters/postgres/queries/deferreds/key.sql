-- deferreds/key: the key from which this installation derives tokens.
SELECT key FROM baton.deferred_key
