"""Builds every object and starts every task. No logic here, only names in the order things happen.

ground     identity, Postgres, hints, the link to the app
state      the store, its copies in Redis, the loader
work       what a leader does: ticks, runs, singletons, heartbeats
api        the gRPC services
sidecar    the flow, from start to stop
"""

from sidecar.app.sidecar import Sidecar

__all__ = ["Sidecar"]
