"""Jobs: background work that any pod may execute."""
