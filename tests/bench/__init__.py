"""Ratios against peers and raw costs, each pair in one run. `make bench` writes the report."""
