"""Lists come in pages; this asks for one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import grpc.aio

from baton._connection import Connection

Response = TypeVar("Response", bound=Any)


async def pages(
    connection: Connection,
    method: grpc.aio.UnaryUnaryMultiCallable[Any, Response],
    request: Any,
) -> AsyncIterator[Response]:
    """Every page of a list, in order."""
    while True:
        page = await connection.call(method, request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token
