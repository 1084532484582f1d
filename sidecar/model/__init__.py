"""Types and rules without I/O or await; time is always an argument."""
