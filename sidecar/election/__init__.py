"""Election: campaigns for every group, calls the app on each change, and runs the leader's work."""
