"""An attached app in a thread of its own, for programs without an event loop.

A server that forks, such as gunicorn with sync workers, starts it in each worker, after the fork:
neither threads nor the state of gRPC survive one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")
_START_SECONDS = 30.0


class Background:
    """A thread with an event loop in which the app is attached; `stop` drains it."""

    def __init__(self, attach: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None]):
        self._attach, self._request_stop = attach, stop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="baton", daemon=True)
        self._thread.start()
        self._started.wait(_START_SECONDS)
        if self._error is not None:
            raise self._error

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a call to the sidecar, such as `app.jobs.submit(…)`, in this thread."""
        loop = self._loop
        if loop is None or not self._thread.is_alive():
            coroutine.close()
            raise RuntimeError("the app is not attached any more")
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    def stop(self, timeout: float | None = None) -> None:
        """Drains the app and ends the thread; waits for it no longer than `timeout`."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._request_stop)
        self._thread.join(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        attached = asyncio.ensure_future(self._attach())
        await asyncio.sleep(0)  # its first step connects, or fails
        if not attached.done():
            self._started.set()
        await attached
