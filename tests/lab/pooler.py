"""A connection pooler, as far as a client can tell."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def pooler(url: str) -> AsyncIterator[str]:
    """Passes everything on, but rewrites the backend's process id as poolers do."""
    match = re.search(r"@([\d.]+):(\d+)/", url)
    assert match
    host, port = match[1], int(match[2])

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            at = data.find(b"K\x00\x00\x00")
            writer.write(data if at < 0 else data[: at + 5] + b"\x00\x00\x00\x07" + data[at + 9 :])
        writer.close()

    done: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(host, port)
        done.extend((writer, upstream_writer))
        await asyncio.gather(pass_on(reader, upstream_writer), pass_on(upstream_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    own_port = server.sockets[0].getsockname()[1]
    async with server:
        yield url.replace(f"{host}:{port}", f"127.0.0.1:{own_port}")
        for writer in done:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
