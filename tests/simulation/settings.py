"""Times that several models share, shorter than the product's so that a short history has many."""

HEARTBEAT_SECONDS = 6.0
STALE_SECONDS = 24.0
