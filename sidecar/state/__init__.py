"""State: nothing acknowledged is ever lost. Postgres decides, Redis repeats.

    Put, Delete ──► Postgres commits ──► acknowledged ──► Redis, behind the caller's back
    Get ──► Redis, if what it says is believable (`freshness`) ──► else Postgres

`StateWatch` tells changes, `StateLoader` gives owned state to a run, `StateSweeper` removes what
has expired.
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
