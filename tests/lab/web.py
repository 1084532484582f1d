"""Calls of the JSON API over a plain socket, so that tests choose every header."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    address: str,
    path: str,
    body: bytes | str | dict[str, Any] | None = None,
    *,
    method: str = "",
    **headers: str,
) -> Answer:
    """One request; keyword arguments are headers, with `_` for `-`; an empty one is left out."""
    content = json.dumps(body) if isinstance(body, dict) else body or b""
    raw = content.encode() if isinstance(content, str) else content
    reader, writer = await open_connection(address)
    try:
        writer.write(head(method or ("GET" if body is None else "POST"), path, raw, headers) + raw)
        async with asyncio.timeout(60):
            text = await reader.read()
    finally:
        writer.close()
    return parsed(text)


async def open_connection(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.startswith("unix://"):
        return await asyncio.open_unix_connection(address.removeprefix("unix://"))
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


def head(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    sent = {
        "host": "localhost",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in sent.items() if value]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


def parsed(text: bytes) -> Answer:
    top, _, body = text.partition(b"\r\n\r\n")
    first, *lines = top.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Answer(int(first.split()[1]), headers, body)
