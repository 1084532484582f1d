"""Builds every object and starts every task. This package has no other logic.

infrastructure  identity, Postgres, hints, the link to the app
states          the state store, its copies in Redis, the loader
leader_work     the work of a leader: ticks, runs, singletons, heartbeats
api             the gRPC services
sidecar         the life of the process, from start to stop
"""

from sidecar.app.sidecar import Sidecar

__all__ = ["Sidecar"]
