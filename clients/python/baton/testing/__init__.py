"""A sidecar for unit tests: in this process, in memory, over real gRPC.

    async with FakeSidecar.beside(app) as sidecar:
        await sidecar.lead()
        run = await sidecar.execute("report", {"day": "monday"})
        assert run.outcome == OUTCOME_SUCCEEDED

It keeps the contract of the callbacks, leadership, runs, state and deferreds. Nothing ticks by
itself: a test says when something is executed, so that it needs no waiting.
"""

from baton.testing._common import eventually
from baton.testing._sidecar import FakeSidecar

__all__ = ["FakeSidecar", "eventually"]
