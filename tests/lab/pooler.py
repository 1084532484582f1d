"""A connection pooler, as far as a client can tell."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def pooler(url: str, *, crashed: asyncio.Event | None = None) -> AsyncIterator[str]:
    """Passes everything on, but rewrites the backend's process id as poolers do.

    While `crashed` is set a query gets what PgBouncer sends when a server goes down under it: the
    server's last error, one of its own, and the end.
    """
    match = re.search(r"@([\d.]+):(\d+)/", url)
    assert match
    host, port = match[1], int(match[2])

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if crashed and crashed.is_set() and data[:1] in (b"Q", b"P"):
                return
            at = data.find(b"K\x00\x00\x00")
            writer.write(data if at < 0 else data[: at + 5] + b"\x00\x00\x00\x07" + data[at + 9 :])
        writer.close()

    done: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(host, port)
        done.extend((writer, upstream_writer))
        answering = asyncio.create_task(pass_on(upstream_reader, writer))
        await pass_on(reader, upstream_writer)
        if crashed and crashed.is_set():
            writer.write(_error("57P01", "terminating connection due to administrator command"))
            writer.write(_error("08P01", "server conn crashed?"))
            writer.close()
            upstream_writer.close()
        await answering

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    own_port = server.sockets[0].getsockname()[1]
    async with server:
        yield url.replace(f"{host}:{port}", f"127.0.0.1:{own_port}")
        for writer in done:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def _error(code: str, text: str) -> bytes:
    fields = {"S": "FATAL", "V": "FATAL", "C": code, "M": text}
    body = b"".join(f"{kind}{value}\0".encode() for kind, value in fields.items()) + b"\0"
    return b"E" + (len(body) + 4).to_bytes(4, "big") + body
