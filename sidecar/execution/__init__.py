"""The one pipeline that executes runs, whatever their kind, and the authority it needs for it."""
