"""The real sidecar code under a virtual clock, against modelled servers and thousands of faults."""
