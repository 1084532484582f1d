"""Words and rules of Baton: pure, without I/O; time is always an argument."""
