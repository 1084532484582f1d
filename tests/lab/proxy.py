"""A TCP proxy that breaks the network on command, between a client and a real server.

It runs on a thread with an event loop of its own; every control method is synchronous and has taken
effect when it returns. Faults act on connections that stand and on new ones, until `heal`. A C call
that blocks with the GIL held, such as psycopg's `pgconn.get_result`, blocks the proxy with it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

_CHUNK_BYTES = 65_536
_CONTROL_SECONDS = 10.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

T = TypeVar("T")


class Direction(Enum):
    TO_SERVER = "to_server"
    TO_CLIENT = "to_client"


class Verdict(Enum):
    """What a filter decides about one chunk of bytes."""

    PASS = "pass"
    DROP = "drop"
    CUT = "cut"  # the chunk is lost and its connection reset, both ways
    MUTE = "mute"  # the chunk and all that follows it in this direction are lost


Filter = Callable[[Direction, bytes], Verdict]
BOTH = frozenset(Direction)


_Item = tuple[float, bytes | None]  # when it is due; bytes, b"" for an end, None for a reset


class _Connection:
    """Two pumps; each holds, delays, loses or passes what it reads, ends and resets included."""

    def __init__(self, proxy: FaultProxy, client: _Stream, server: _Stream) -> None:
        self._proxy = proxy
        self._ends = {Direction.TO_SERVER: (client, server), Direction.TO_CLIENT: (server, client)}
        self._muted: set[Direction] = set()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for direction in Direction:
                    items: asyncio.Queue[_Item] = asyncio.Queue(64)
                    tasks.create_task(self._read(direction, items))
                    tasks.create_task(self._write(direction, items))
        except* (ConnectionResetError, asyncio.CancelledError):
            pass  # by a reset that was passed on, or by `cut` and its like
        finally:
            self.close()

    def reset(self) -> None:
        for _, stream in self._ends.values():
            stream.reset()

    def close(self) -> None:
        for _, stream in self._ends.values():
            stream.writer.close()

    async def _read(self, direction: Direction, items: asyncio.Queue[_Item]) -> None:
        reader = self._ends[direction][0].reader
        chunk: bytes | None = b"?"
        while chunk:
            try:
                chunk = await reader.read(_CHUNK_BYTES)
            except OSError:
                chunk = None
            due = asyncio.get_running_loop().time() + self._proxy.delay_seconds
            await items.put((due, chunk))

    async def _write(self, direction: Direction, items: asyncio.Queue[_Item]) -> None:
        while True:
            due, chunk = await items.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if await self._proxy.swallows(direction) or direction in self._muted:
                continue
            if chunk is None:
                self.reset()
                raise ConnectionResetError
            with suppress(OSError):  # that end is gone; its own reader tells the other one
                await self._pass_on(direction, chunk)
            if not chunk:
                return

    async def _pass_on(self, direction: Direction, chunk: bytes) -> None:
        writer = self._ends[direction][1].writer
        if not chunk:
            writer.write_eof()
        elif self._decide(direction, chunk) is Verdict.PASS:
            writer.write(chunk)
            await writer.drain()

    def _decide(self, direction: Direction, chunk: bytes) -> Verdict:
        verdict = self._proxy.filter(direction, chunk)
        if verdict is Verdict.CUT:
            self.reset()
        if verdict is Verdict.MUTE:
            self._muted.add(direction)
        return verdict


class _Stream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        raw = self.writer.get_extra_info("socket")
        if raw is not None and raw.fileno() >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.writer.transport.abort()


class FaultProxy:
    """Forwards 127.0.0.1:`port` to a target. Use it in a `with` block."""

    def __init__(self, target_host: str, target_port: int, port: int = 0) -> None:
        self.target = (target_host, target_port)
        self.port = port
        self.delay_seconds = 0.0
        self.filter: Filter = _pass
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._listener: asyncio.Server | None = None
        self._running: dict[_Connection, asyncio.Task[None]] = {}
        self._silent: frozenset[Direction] = frozenset()
        self._lossy = False
        self._changed = asyncio.Event()

    @classmethod
    def before(cls, url: str) -> FaultProxy:
        """A proxy in front of the server that `url` names; see `url`."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        return cls(parts.hostname, parts.port)

    def url(self, url: str) -> str:
        """`url` with the proxy in place of its server."""
        parts = urlsplit(url)
        user = parts.netloc.rpartition("@")[0]
        host = f"127.0.0.1:{self.port}"
        return parts._replace(netloc=f"{user}@{host}" if user else host).geturl()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        self._do(self._shut_down())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CONTROL_SECONDS)
        self._loop.close()

    # Faults.

    def silence(self, directions: frozenset[Direction] = BOTH, *, lose: bool = False) -> None:
        """No byte passes, connections stay open, ends of them are not passed on either.

        As in a real partition, what was sent meanwhile arrives after `heal`; with `lose`, never.
        """
        self._do(self._set_silent(directions, lose=lose))

    def delay(self, seconds: float) -> None:
        """Every byte arrives this much later, in each direction."""
        self.delay_seconds = seconds

    def refuse(self) -> None:
        """New connections are refused; those that stand go on."""
        self._do(self._stop_listening())

    def cut(self) -> int:
        """Reset every connection, both ways; new ones are welcome. Returns how many there were."""
        return self._do(self._end_all(_Connection.reset))

    def hang_up(self) -> int:
        """Close every connection in an orderly way; new ones are welcome."""
        return self._do(self._end_all(_Connection.close))

    def drop_next_answer(
        self, match: bytes = b"COMMIT", then: Verdict = Verdict.CUT
    ) -> threading.Event:
        """Lose the next chunk from the server that contains `match`; the event is set when done.

        `then` says what becomes of its connection: CUT, MUTE, or DROP to let it go on.
        """
        dropped = threading.Event()

        def decide(direction: Direction, chunk: bytes) -> Verdict:
            if direction is Direction.TO_SERVER or match not in chunk or dropped.is_set():
                return Verdict.PASS
            dropped.set()
            return then

        self.filter = decide
        return dropped

    def heal(self) -> None:
        """End every fault: what was held back is delivered."""
        self.delay_seconds, self.filter = 0.0, _pass
        self._do(self._set_silent(frozenset(), lose=False))
        self._do(self._listen())

    @property
    def connections(self) -> int:
        return len(self._running)

    # On the loop's thread.

    async def swallows(self, direction: Direction) -> bool:
        """Wait while `direction` is held back; whether a byte is to be lost."""
        while direction in self._silent:
            if self._lossy:
                return True
            await self._changed.wait()
        return False

    async def _set_silent(self, directions: frozenset[Direction], *, lose: bool) -> None:
        self._silent, self._lossy = directions, lose
        self._changed.set()
        self._changed = asyncio.Event()

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(
                self._accept, "127.0.0.1", self.port, reuse_address=True
            )
            self.port = self._listener.sockets[0].getsockname()[1]

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Stream(reader, writer)
        try:
            # A partition swallows the attempt to connect too: the server must not see it.
            while await self.swallows(Direction.TO_SERVER):
                await self._changed.wait()
            server = _Stream(*await asyncio.open_connection(*self.target))
        except (OSError, asyncio.CancelledError):
            client.reset()
            return
        if self._listener is None:  # refused meanwhile: it must not slip through
            server.reset()
            client.reset()
            return
        connection = _Connection(self, client, server)
        task = asyncio.current_task()
        assert task is not None
        self._running[connection] = task
        try:
            await connection.run()
        finally:
            del self._running[connection]

    async def _end_all(self, end: Callable[[_Connection], None]) -> int:
        ended = list(self._running.items())
        for connection, _ in ended:
            end(connection)
        await asyncio.sleep(0)
        for _, task in ended:
            task.cancel()
        await asyncio.gather(*(task for _, task in ended), return_exceptions=True)
        return len(ended)

    async def _shut_down(self) -> None:
        await self._stop_listening()
        await self._end_all(_Connection.reset)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:  # connections not made yet
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CONTROL_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _pass(direction: Direction, chunk: bytes) -> Verdict:
    return Verdict.PASS
