"""A sidecar with the grace planted out: what the election's tests must be able to catch."""

import sys

from sidecar.app import infrastructure
from sidecar.cli import main
from sidecar.config import Settings
from sidecar.model.election_types import Timers

_timers = infrastructure.timers_of


def _without_grace(settings: Settings) -> Timers:
    timers = _timers(settings)
    return Timers(timers.ping, timers.lease, timers.server_lease, timers.poll, 0.0, timers.drain)


infrastructure.timers_of = _without_grace

if __name__ == "__main__":
    sys.exit(main())
