"""A sidecar that tidies every second: what it does every few minutes, within a test."""

import sys

from sidecar.app import sidecar
from sidecar.cli import main

sidecar._PRUNE_SECONDS = 1.0

if __name__ == "__main__":
    sys.exit(main())
