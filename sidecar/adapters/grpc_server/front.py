"""A proxy in front of gRPC: accepts the connections of the API, limits them and forwards bytes.

gRPC cannot bound the memory that a peer makes it use (see docs/adr/0009). So it listens on a socket
that only this process can reach, and all outside connections go through this proxy.

Guarantees:
- at most `connections` are open, and new ones are limited per second; a connection above the limit
  gets a GOAWAY and is closed; the oldest connection that never made a call makes room first;
- a connection whose frames exceed a limit of `model.framing` is closed before gRPC sees them, and
  fewer new ones are accepted for a while;
- nothing is read while `calls_waiting` calls wait for the event loop, which bounds what gRPC
  queues; a peer that cancels many calls is read from more slowly;
- at most one chunk of 64 KiB is buffered per direction: a peer that does not read is not read from;
- the socket of gRPC has no name in the file system once it listens.
"""

import asyncio
import os
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from sidecar import metrics
from sidecar.adapters.grpc_server.private_socket import PrivateSocket
from sidecar.config import addresses
from sidecar.model.framing import Budget, FrameLimits, FrameMeter

log = structlog.get_logger()

_BACKLOG = 128
_CHUNK_BYTES = 64 * 1024
_ACCEPTED_AT_ONCE = 16
_PAUSE_SECONDS = 0.2  # before new connections are accepted again
_SILENT_SECONDS = 10.0  # without a call; then a connection may be closed to make room
_LOG_SECONDS = 10.0
_UNSEEN_SECONDS = 0.2  # after this a forwarded call that was not seen is forgotten
# Empty SETTINGS, then GOAWAY with ENHANCE_YOUR_CALM: no call was processed, retry later.
_COME_BACK_LATER = b"\0\0\0\4\0\0\0\0\0" + b"\0\0\x08\7\0\0\0\0\0" + b"\0\0\0\0" + b"\0\0\0\x0b"


@dataclass(frozen=True, slots=True)
class FrontLimits:
    connections: int = 256
    connections_burst: int = 512
    connections_per_second: int = 100
    connections_fine: int = 20  # how many fewer are accepted after one that broke a limit
    # Of all connections together: forwarded, and not yet seen by an interceptor.
    calls_waiting: int = 200
    # gRPC keeps a cancelled call for a while.
    resets_burst: int = 1000
    resets_per_second: int = 500
    frames: FrameLimits = field(default_factory=FrameLimits)


class Front:
    """Listens on the API's address and forwards what is within the limits."""

    def __init__(self, inner: PrivateSocket, limits: FrontLimits | None = None) -> None:
        self.limits = limits or FrontLimits()
        self.loop = asyncio.get_running_loop()
        self._inner = inner
        self._new = self._budget(self.limits.connections_burst, self.limits.connections_per_second)
        self._calls_waiting = 0
        self._paused: dict[_Flow, None] = {}
        self._seen_at = self.loop.time()
        self._resets = self._budget(self.limits.resets_burst, self.limits.resets_per_second)
        self._open: dict[_Connection, None] = {}  # the oldest first
        self._listening: socket.socket | None = None
        self._logged_at = -_LOG_SECONDS

    def listen(self, handle: socket.socket) -> None:
        """Accept from a socket that listens."""
        self._listening = handle
        self.loop.add_reader(handle, self._accept)

    def stop_listening(self) -> None:
        handle, self._listening = self._listening, None
        if handle:
            self.loop.remove_reader(handle)
            handle.close()

    def close(self) -> None:
        self.stop_listening()
        for connection in list(self._open):
            connection.close()

    def refused(self, reason: str, problem: str) -> None:
        metrics.API_CONNECTIONS_REFUSED.labels(reason=reason).inc()
        now = self.loop.time()
        if now - self._logged_at >= _LOG_SECONDS:  # a flood of connections must not flood the log
            self._logged_at = now
            log.warning("api_connection_refused", reason=reason, problem=problem)

    def broke_limit(self, problem: str) -> None:
        self._new.fine(self.limits.connections_fine)
        self.refused("frames", problem)

    # ── calls that gRPC has and the event loop has not seen ─────────────────────────────────────

    def passed_on(self, calls: int, resets: int) -> float:
        """How long a connection must wait after it made and cancelled so many calls."""
        self._calls_waiting += calls
        return self._resets.borrow(resets, self.loop.time()) if resets else 0.0

    def call_seen(self) -> None:
        self._seen_at = self.loop.time()
        if self._calls_waiting:
            self._calls_waiting -= 1
        if self._paused and self._calls_waiting < self.limits.calls_waiting:
            self._resume_one()

    def must_wait(self, flow: "_Flow") -> bool:
        if self._calls_waiting < self.limits.calls_waiting:
            return False
        if not self._paused:
            self.loop.call_later(_UNSEEN_SECONDS, self._forget)
        self._paused[flow] = None
        return True

    def _forget(self) -> None:
        """Some calls are never seen: gRPC itself refused them, or they were cancelled before."""
        if self._paused and self.loop.time() - self._seen_at >= _UNSEEN_SECONDS:
            self._calls_waiting = 0
            self._resume_one()
        if self._paused:
            self.loop.call_later(_UNSEEN_SECONDS, self._forget)

    def _resume_one(self) -> None:
        """Resume the one that waited longest; the others follow as calls are seen."""
        flow = next(iter(self._paused))
        del self._paused[flow]
        flow.resume()

    # ── connections ─────────────────────────────────────────────────────────────────────────────

    def _budget(self, burst: int, per_second: int) -> Budget:
        return Budget(burst, per_second, self.loop.time())

    def ended(self, connection: "_Connection") -> None:
        self._open.pop(connection, None)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            if self._listening is None:
                return
            if not self._new.spend(1, self.loop.time()):
                self.refused("new_connections", "too many new connections a second: they wait")
                self._pause()
                return
            try:
                outer, _address = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no file descriptor is left, or the peer is gone already
                self.refused("unavailable", str(error))
                self._pause()
                return
            self._admit(outer)

    def _pause(self) -> None:
        """Leave them in the kernel's queue: accepting and refusing costs as much as serving."""
        if self._listening is not None:
            self.loop.remove_reader(self._listening)
            self.loop.call_later(_PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if self._listening is not None:
            self.loop.add_reader(self._listening, self._accept)

    def _admit(self, outer: socket.socket) -> None:
        outer.setblocking(False)
        if len(self._open) >= self.limits.connections and not self._make_room():
            self.refused("connections", f"{self.limits.connections} connections are open")
            return _dismiss(outer)
        try:
            inner = self._inner.connected()
        except OSError as error:  # its backlog is full, or no file descriptor is left
            self.refused("unavailable", str(error))
            return _dismiss(outer)
        if outer.family != socket.AF_UNIX:
            outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open[_Connection(self, outer, inner)] = None
        return None

    def _make_room(self) -> bool:
        until = self.loop.time() - _SILENT_SECONDS
        for connection in self._open:
            if not connection.meter.calls and connection.since <= until:
                connection.close()
                return True
        return False


def _dismiss(outer: socket.socket) -> None:
    with suppress(OSError):
        outer.send(_COME_BACK_LATER)
    outer.close()


class _Connection:
    """A peer and gRPC's end for it, closed together."""

    def __init__(self, front: Front, outer: socket.socket, inner: socket.socket) -> None:
        self._front = front
        self.since = front.loop.time()
        self.meter = FrameMeter(front.limits.frames, self.since)
        self._calls = self._resets = 0  # already counted
        self._sockets = outer, inner
        _Flow(front.loop, outer, inner, self)
        _Flow(front.loop, inner, outer, self, metered=False)

    def must_wait(self, flow: "_Flow") -> bool:
        return self._front.must_wait(flow)

    def within_limits(self, data: bytes) -> bool:
        problem = self.meter.feed(data, self._front.loop.time())
        if problem:
            self._front.broke_limit(problem)
            self.close()
        return not problem

    def pause_seconds(self) -> float:
        """How long to wait before the next read from this peer."""
        calls, resets = self.meter.calls - self._calls, self.meter.resets - self._resets
        if not calls and not resets:
            return 0.0
        self._calls, self._resets = self.meter.calls, self.meter.resets
        return self._front.passed_on(calls, resets)

    def close(self) -> None:
        self._front.ended(self)
        for each in self._sockets:
            if each.fileno() >= 0:
                self._front.loop.remove_reader(each)
                self._front.loop.remove_writer(each)
                each.close()


class _Flow:
    """One direction: data read from one end is written to the other before the next read.

    Sockets, not transports of asyncio: fewer layers per chunk, and nothing is queued.
    """

    __slots__ = ("_connection", "_loop", "_metered", "_source", "_target", "_unsent")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        source: socket.socket,
        target: socket.socket,
        connection: _Connection,
        *,
        metered: bool = True,
    ) -> None:
        self._loop, self._connection, self._metered = loop, connection, metered
        self._source, self._target = source, target
        self._unsent = memoryview(b"")
        loop.add_reader(source, self._read)

    def _read(self) -> None:
        if self._metered and self._connection.must_wait(self):
            self._loop.remove_reader(self._source)
            return
        try:
            data = self._source.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._connection.close()
            return
        if self._metered and not self._connection.within_limits(data):
            return
        sent = self._send(data)
        if 0 <= sent < len(data):
            self._unsent = memoryview(data)[sent:]
            self._loop.remove_reader(self._source)
            self._loop.add_writer(self._target, self._write)
        elif self._metered and sent >= 0 and (seconds := self._connection.pause_seconds()):
            self._loop.remove_reader(self._source)
            self._loop.call_later(seconds, self.resume)

    def _write(self) -> None:
        sent = self._send(self._unsent)
        if sent < 0:
            return
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._loop.remove_writer(self._target)
            self.resume()

    def resume(self) -> None:
        if self._source.fileno() >= 0:
            self._loop.add_reader(self._source, self._read)

    def _send(self, data: bytes | memoryview) -> int:
        """How many bytes were sent; -1: the other end is gone, and the connection is closed."""
        try:
            return self._target.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self._connection.close()
            return -1


def _listen(handle: socket.socket) -> None:
    handle.setblocking(False)
    handle.listen(_BACKLOG)


def listening(address: str) -> socket.socket:
    """A socket that listens on `host:port`; connections wait until `Front.listen`."""
    parts = addresses.parse(address)
    (family, kind, protocol, _, where), *_rest = socket.getaddrinfo(
        parts.host, parts.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    handle = socket.socket(family, kind, protocol)
    try:
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        handle.bind(where)
        _listen(handle)
    except BaseException:
        handle.close()
        raise
    return handle


def listening_file(path: Path, mode: int) -> socket.socket:
    """Listen on a socket file; replaces a file that no process listens on."""
    handle = socket.socket(socket.AF_UNIX)
    try:
        path.unlink(missing_ok=True)
        handle.bind(os.fspath(path))
        path.chmod(mode)  # no client can connect before it listens
        _listen(handle)
    except BaseException:
        handle.close()
        raise
    return handle
