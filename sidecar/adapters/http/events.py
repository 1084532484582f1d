"""Server-sent events: how a stream of the API is sent over plain HTTP.

Guarantees: an error before the first event is an ordinary answer with its HTTP code; when the
client disconnects the source is closed; a client that does not read is not written to.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request

from sidecar.adapters.http.answers import Send, refuse
from sidecar.adapters.http.refusals import Refusal

ALIVE_SECONDS = 15.0
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),  # proxies pass each event on at once
)


class EventStream:
    def __init__(self, request: Request, send: Send) -> None:
        self._request = request
        self._send = send
        self._started = False

    async def start(self) -> None:
        if not self._started:
            self._started = True
            await self._send(
                {"type": "http.response.start", "status": 200, "headers": list(_HEADERS)}
            )
            await self._write(b": open\n\n")

    async def send_all(self, source: AsyncGenerator[bytes, None]) -> None:
        """Send each as an event until the source or the client ends."""
        gone = asyncio.create_task(self._disconnected(), name="web.disconnect")
        try:
            async with aclosing(source) as messages:
                while (message := await self._next(messages, gone)) is not None:
                    await self.start()
                    await self._write(b"data: " + message + b"\n\n")
            if not gone.done():
                await self.start()
                await self._write(b"", more=False)
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)

    async def end(self, refusal: Refusal) -> None:
        """End with an error: as an event if events were sent, else as the answer."""
        if not self._started:
            await refuse(self._send, refusal)
            return
        await self._write(b"event: error\ndata: " + refusal.body().strip() + b"\n\n", more=False)

    async def _next(
        self, messages: AsyncGenerator[bytes, None], gone: "asyncio.Task[None]"
    ) -> bytes | None:
        """The next message; None: the source or the client has ended."""
        coming = asyncio.ensure_future(anext(messages))
        try:
            while not coming.done() and not gone.done():
                done, _ = await asyncio.wait(
                    {coming, gone}, timeout=ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if not done and self._started:
                    await self._write(b": alive\n\n")
            return None if not coming.done() else coming.result()
        except StopAsyncIteration:
            return None
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _disconnected(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
