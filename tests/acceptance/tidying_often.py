"""A sidecar that cleans up every second: what it does every few minutes, within a test."""

import sys

from sidecar import maintenance
from sidecar.cli import main

maintenance.INTERVAL_SECONDS = 1.0

if __name__ == "__main__":
    sys.exit(main())
