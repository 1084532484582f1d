"""State: an acknowledged write is never lost. Postgres decides, Redis holds copies.

    Put, Delete ──► Postgres commits ──► acknowledged ──► Redis, in the background
    Get ──► Redis, if the copy is fresh enough (`freshness`) ──► else Postgres

`StateWatch` streams changes, `StateLoader` loads owned state for a run, `StateSweeper` removes
expired entries.
"""

from sidecar.state.copies import NoCopies, RedisCopies
from sidecar.state.loader import LoadedState, StateLoader
from sidecar.state.store import StateStore
from sidecar.state.sweep import StateSweeper
from sidecar.state.watch import StateWatch

__all__ = [
    "LoadedState",
    "NoCopies",
    "RedisCopies",
    "StateLoader",
    "StateStore",
    "StateSweeper",
    "StateWatch",
]
