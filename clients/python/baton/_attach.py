"""Keeps this process attached to its sidecar: opens the stream, and opens it again when it breaks.

A stream that breaks ends every term and every run that came over it. The next one is opened with
back-off; what cannot get better by itself, such as a wrong token, is told once and tried slowly.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import grpc

from baton._connection import backoff_seconds
from baton._declared import Declared
from baton._handlers import Handlers
from baton._leading import Leading
from baton._sidecar import Sidecar
from baton._stream import Stream
from baton.errors import BatonError
from baton.v1 import stream_pb2 as pb
from baton.v1.stream_pb2_grpc import AppStreamStub

log = logging.getLogger("baton")
_FINISH_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 2.0
_LASTING = {  # errors that somebody has to mend
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
}
_OLD_SIDECAR = (
    "this sidecar does not know AppStream.Attach: upgrade it, or serve the app instead "
    "(app.run(address=...), app.serve())"
)


class Attachment:
    """The stream of this process, whichever it is at the moment."""

    def __init__(
        self,
        sidecar: Sidecar,
        leading: Leading,
        handlers: Handlers,
        declared: Declared,
        capacity: int | None,
    ) -> None:
        self._sidecar, self._leading, self._handlers = sidecar, leading, handlers
        self._declared, self._capacity = declared, capacity
        self._stream: Stream | None = None
        self._told = ""

    async def run(self) -> None:
        """Attaches, again and again, until it is cancelled or has left."""
        waits = _waits()
        while not self._leading.stopping:
            lasting = False
            try:
                await self._attach()
            except BatonError as error:
                if self._stream is not None and self._stream.welcomed:
                    waits, self._told = _waits(), ""
                lasting = error.code in _LASTING
                self._tell(error)
            except Exception:
                log.exception("the stream failed")
            self._stream = None
            if not self._leading.stopping:
                await asyncio.sleep(_LONGEST_WAIT_SECONDS if lasting else next(waits))

    async def leave(self, seconds: float) -> None:
        """Takes no more work, hands leadership over and waits for the runs, then closes."""
        self._leading.stopping = True
        stream = self._stream
        if stream is None:
            return
        stream.leave()
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._leading.resign_all()
                await stream.quiet()
        except TimeoutError:
            log.warning("not everything ended within %s s", seconds)

    async def finish(self) -> None:
        """Ends what still runs, sends the last answers and closes the stream."""
        self._leading.stopping = True
        stream = self._stream
        if stream is not None:
            try:
                async with asyncio.timeout(_FINISH_SECONDS):
                    await self._leading.end_all(_FINISH_SECONDS)
                    await stream.finish()
            except TimeoutError:
                log.warning("the stream was not closed within %s s", _FINISH_SECONDS)

    async def _attach(self) -> None:
        attach: Any = self._sidecar.stub(AppStreamStub).Attach  # without requests: they are written
        call = attach(metadata=self._sidecar.metadata())
        self._stream = Stream(self._sidecar, self._leading, self._handlers, call)
        await self._stream.run(self._hello())

    def _hello(self) -> pb.Hello:
        handlers = self._handlers
        return pb.Hello(
            client=f"baton-python/{_version()}",
            process_id=str(os.getpid()),
            capacity=self._capacity or handlers.capacity(),
            singletons=[*handlers.singletons],
            schedules=[*handlers.schedules],
            jobs=[*handlers.jobs],
            declared_schedules=self._declared.schedules.values(),
            declared_singletons=self._declared.singletons.values(),
            revision=self._declared.revision,
        )

    def _tell(self, error: BatonError) -> None:
        """Logs why the stream ended: once, until it changes or worked meanwhile."""
        if self._leading.stopping:
            return
        code = error.code.name if error.code else error.reason
        told = f"{code}: {error}"
        if error.code is grpc.StatusCode.UNIMPLEMENTED:
            told = _OLD_SIDECAR
        lasting = error.code in _LASTING
        level = logging.ERROR if lasting else logging.WARNING
        log.log(logging.DEBUG if told == self._told else level, "not attached: %s", told)
        self._told = told


def _waits() -> Iterator[float]:
    return backoff_seconds(longest=_LONGEST_WAIT_SECONDS)


def _version() -> str:
    try:
        return metadata.version("baton-client")
    except metadata.PackageNotFoundError:  # used from a checkout that was never installed
        return "0"
