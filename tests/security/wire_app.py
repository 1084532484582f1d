"""An app that can answer anything: HTTP/2 and gRPC written out byte by byte, no library between.

It knows calls by what they carry, not by their path: the name of a schedule in the request chooses
the answer from `ANSWERS`; an empty request is a health check, and this app has none, which counts
as healthy; every other call is a callback of leadership and is acknowledged.

    python -m tests.security.wire_app --address 127.0.0.1:50051
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from sidecar._proto.baton.v1 import callback_pb2

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 0x1, 0x4, 0x1
_FRAME_BYTES_MAX = 16_384
Header = tuple[bytes, bytes]
_OPENING: tuple[Header, ...] = (
    (b":status", b"200"),
    (b"content-type", b"application/grpc"),
)

Response = callback_pb2.ExecuteResponse
Succeeded = callback_pb2.Succeeded
Failed = callback_pb2.Failed


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes over the wire for one call. `end`: trailers, reset, goaway or silence."""

    headers: Sequence[Header] | None = _OPENING
    data: bytes = b""
    trailers: Sequence[Header] = ((b"grpc-status", b"0"),)
    end: str = "trailers"


Choose = Callable[[bytes], Answer]


def framed(message: bytes, *, compressed: int = 0, length: int | None = None) -> bytes:
    """A gRPC message with its prefix, which may lie."""
    size = len(message) if length is None else length
    return bytes([compressed]) + size.to_bytes(4, "big") + message


def _says(message: bytes) -> Answer:
    return Answer(data=framed(message))


def _status(code: bytes, message: bytes = b"", *more: Header) -> Answer:
    trailers: list[Header] = [(b"grpc-status", code)]
    if message:
        trailers.append((b"grpc-message", message))
    return Answer(trailers=[*trailers, *more])


_OK = Response(succeeded=Succeeded(result=b"fine")).SerializeToString()


def _with_retry_after(seconds: int, nanos: int = 0) -> bytes:
    answer = Response(failed=Failed(message="later", retryable=True))
    answer.failed.retry_after.seconds, answer.failed.retry_after.nanos = seconds, nanos
    return answer.SerializeToString()


# By name of the schedule. What each must lead to stands in `test_app_answers`.
ANSWERS: dict[str, Answer] = {
    # the message
    "good": _says(_OK),
    "empty-message": _says(b""),
    "rubbish-bytes": _says(b"\xff\xff\xff\xff"),
    "cut-in-the-middle": _says(_OK[:-2]),
    "trailing-garbage": _says(_OK + b"\xff"),
    "unknown-field": _says(_OK + b"\xfa\x7f\x02hi"),
    "wrong-type": _says(b"\x08\x01"),  # a number where a message is expected
    "invalid-utf8-message": _says(b"\x12\x04\x0a\x02\xc3\x28"),
    "nul-in-message": _says(Response(failed=Failed(message="a\0b")).SerializeToString()),
    "nul-in-code": _says(Response(failed=Failed(message="m", code="a\0b")).SerializeToString()),
    "nul-in-skip": _says(
        Response(skipped=callback_pb2.Skipped(reason="a\0b")).SerializeToString()
    ),
    "control-characters": _says(
        Response(failed=Failed(message="a\x1b[31m\nforged")).SerializeToString()
    ),
    "message-without-end": _says(
        Response(failed=Failed(message="m" * 1_000_000)).SerializeToString()
    ),
    "code-without-end": _says(
        Response(failed=Failed(message="m", code="c" * 100_000)).SerializeToString()
    ),
    "huge-result": _says(Response(succeeded=Succeeded(result=b"r" * 300_000)).SerializeToString()),
    "huge-state": _says(
        Response(succeeded=Succeeded(state=b"s" * (1024 * 1024 + 1))).SerializeToString()
    ),
    "huge-message": _says(
        Response(succeeded=Succeeded(result=b"r" * (4 * 1024 * 1024))).SerializeToString()
    ),
    "endless-retry-after": _says(_with_retry_after(2**62)),
    "negative-retry-after": _says(_with_retry_after(-(2**62))),
    "odd-retry-after": _says(_with_retry_after(0, -2_000_000_000)),
    # the frame around it
    "no-message": Answer(),
    "two-messages": Answer(data=framed(_OK) * 2),
    "length-that-lies": Answer(data=framed(_OK, length=len(_OK) + 7)),
    "length-of-4-gib": Answer(data=framed(_OK, length=2**32 - 1)),
    "compressed-by-nobody": Answer(data=framed(_OK, compressed=1)),
    "flag-of-7": Answer(data=framed(_OK, compressed=7)),
    # the status
    "no-status": Answer(data=framed(_OK), trailers=((b"x-nothing", b"1"),)),
    "status-99": _status(b"99", b"not in the list"),
    "status-word": _status(b"FAILED", b"a word"),
    "status-negative": _status(b"-1"),
    "status-twice": _status(b"3", b"first", (b"grpc-status", b"0")),
    "status-utf8": _status(b"13", b"\xff\xfe\xc3\x28"),
    "status-percent": _status(b"13", b"%FF%FE%zz%"),
    "status-long": _status(b"13", b"x" * 6_000),
    "status-details": _status(b"13", b"with details", (b"grpc-status-details-bin", b"!!!")),
    # HTTP
    "http-500": Answer(headers=((b":status", b"500"), (b"content-type", b"text/html")),
                       data=b"<h1>oops</h1>", trailers=((b"x-nothing", b"1"),)),
    "http-without-status": Answer(headers=((b"content-type", b"application/grpc"),)),
    "headers-alone": Answer(headers=((b":status", b"200"),), trailers=()),
    # the stream
    "reset": Answer(headers=None, end="reset"),
    "reset-after-the-message": Answer(data=framed(_OK), end="reset"),
    "never": Answer(headers=None, end="silence"),
    "never-ends": Answer(data=framed(_OK), end="silence"),
    "goaway": Answer(headers=None, end="goaway"),
}  # fmt: skip


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def _literal(text: bytes) -> bytes:
    """An HPACK string without Huffman coding."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, length = len(text) - 127, b"\x7f"
    while rest >= 128:
        length, rest = length + bytes([rest % 128 + 128]), rest // 128
    return length + bytes([rest]) + text


def _header_block(headers: Sequence[Header]) -> bytes:
    """Literals that are never indexed."""
    return b"".join(b"\x10" + _literal(name) + _literal(value) for name, value in headers)


class _Connection:
    """Reads frames and answers each call in a task of its own, within the caller's windows."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, choose: Choose
    ) -> None:
        self._reader, self._writer, self._choose = reader, writer, choose
        self._bodies: dict[int, bytes] = {}
        self._room: dict[int, int] = {0: 65_535}  # by stream; 0: the connection
        self._first_room = 65_535
        self._more_room = asyncio.Event()
        self._answers: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        await self._reader.readexactly(len(_PREFACE))
        self._writer.write(_frame(_SETTINGS, 0, 0))
        while True:
            head = await self._reader.readexactly(9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
            payload = await self._reader.readexactly(size)
            if kind == _DATA:
                self._received(stream, payload, last=bool(flags & _END_STREAM))
            else:
                self._told(kind, flags, stream, payload)

    def _told(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            for start in range(0, len(payload), 6):
                if payload[start : start + 2] == b"\x00\x04":
                    self._first_room = int.from_bytes(payload[start + 2 : start + 6], "big")
            self._writer.write(_frame(_SETTINGS, _ACK, 0))
        elif kind == _PING and not flags & _ACK:
            self._writer.write(_frame(_PING, _ACK, 0, payload))
        elif kind == _HEADERS:
            self._room[stream] = self._first_room
        elif kind == _WINDOW_UPDATE and stream in self._room:
            self._room[stream] += int.from_bytes(payload, "big")
            self._more_room.set()

    def _received(self, stream: int, payload: bytes, *, last: bool) -> None:
        self._bodies[stream] = self._bodies.get(stream, b"") + payload
        if payload:
            room = len(payload).to_bytes(4, "big")
            self._writer.write(_frame(_WINDOW_UPDATE, 0, 0, room))
        if last:
            work = self._answer(stream, self._choose(self._bodies.pop(stream)))
            task = asyncio.create_task(work)
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def _answer(self, stream: int, answer: Answer) -> None:
        send = self._writer.write
        if answer.headers is not None:
            alone = _END_STREAM if not answer.trailers and answer.end == "trailers" else 0
            block = _header_block(answer.headers)
            send(_frame(_HEADERS, _END_HEADERS | alone, stream, block))
        await self._send_data(stream, answer.data)
        if answer.end == "trailers" and answer.trailers:
            block = _header_block(answer.trailers)
            send(_frame(_HEADERS, _END_HEADERS | _END_STREAM, stream, block))
        elif answer.end == "reset":
            send(_frame(_RST_STREAM, 0, stream, (2).to_bytes(4, "big")))
        elif answer.end == "goaway":
            send(_frame(_GOAWAY, 0, 0, bytes(4) + (2).to_bytes(4, "big") + b"\xff rubbish"))
            self._writer.close()

    async def _send_data(self, stream: int, data: bytes) -> None:
        while data:
            room = min(self._room[0], self._room[stream], _FRAME_BYTES_MAX)
            if room <= 0:
                self._more_room.clear()
                await self._more_room.wait()
                continue
            chunk, data = data[:room], data[room:]
            self._room[0] -= len(chunk)
            self._room[stream] -= len(chunk)
            self._writer.write(_frame(_DATA, 0, stream, chunk))
            await self._writer.drain()


def by_name(request: bytes) -> Answer:
    """The answer of `ANSWERS` for an Execute; every other call goes well."""
    if len(request) <= len(framed(b"")):
        return _status(b"12", b"no health service")
    try:
        name = callback_pb2.ExecuteRequest.FromString(request[5:]).name
    except DecodeError:
        name = ""
    return ANSWERS.get(name, _says(b""))


@asynccontextmanager
async def serving(address: str, choose: Choose) -> AsyncIterator[asyncio.Server]:
    connections: set[asyncio.StreamWriter] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await _Connection(reader, writer, choose).serve()
        writer.close()

    host, _, port = address.rpartition(":")
    async with await asyncio.start_server(accept, host, int(port)) as server:
        yield server
        for writer in connections:
            writer.close()


async def _serve(address: str) -> None:
    async with serving(address, by_name) as server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    asyncio.run(_serve(parser.parse_args().address))


if __name__ == "__main__":
    main()
