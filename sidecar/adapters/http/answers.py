"""Whole answers over ASGI."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from sidecar.adapters.http.refusals import Refusal

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]
PLAIN_HEADERS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
_JSON: Header = (b"content-type", b"application/json")


async def respond(
    send: Send, status: int, body: bytes, headers: tuple[Header, ...] = (_JSON, *PLAIN_HEADERS)
) -> None:
    """Send a whole answer; JSON unless `headers` say otherwise."""
    sized = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, refusal: Refusal) -> None:
    # The rest of a body that was not read is not waited for.
    headers: tuple[Header, ...] = (_JSON, *PLAIN_HEADERS, (b"connection", b"close"))
    if refusal.code == "unauthenticated":
        headers += ((b"www-authenticate", b"Bearer"),)
    await respond(send, refusal.http_code, refusal.body(), headers)
