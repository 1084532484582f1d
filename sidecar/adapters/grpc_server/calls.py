"""The calls in progress, and how they end when the server stops.

Guarantee: a call in progress at the end of the grace period ends with UNAVAILABLE and a retry
delay. gRPC itself would end it with CANCELLED, which means that the client cancelled it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from sidecar.model.errors import SidecarStopping


class Calls:
    """Each call runs in its own task; a client that cancels the call cancels the task too."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[object]] = set()
        self._ended: set[asyncio.Task[object]] = set()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Raises SidecarStopping inside the call when `end` is called."""
        task = asyncio.current_task()
        assert task  # noqa: S101 - gRPC runs each handler in a task
        self._under_way.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
            raise SidecarStopping("the sidecar is stopping; try again") from None
        finally:
            self._under_way.discard(task)
            self._ended.discard(task)

    def end(self) -> None:
        for task in [*self._under_way]:
            self._ended.add(task)
            task.cancel()
