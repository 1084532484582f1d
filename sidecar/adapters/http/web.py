"""What `web.address` serves: the JSON API, its OpenAPI document and the dashboard's files.

Guarantees (G12): Host and origin are checked before anything else; a port that is in use costs the
web and nothing more.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

import structlog
from starlette.requests import Request

from sidecar.adapters.grpc_app import MESSAGE_BYTES_MAX
from sidecar.adapters.grpc_server.front import listening_file
from sidecar.adapters.grpc_server.server import SOCKET_MODE, ApiServer, socket_path, taken
from sidecar.adapters.http import bounded
from sidecar.adapters.http.answers import Send, refuse, respond
from sidecar.adapters.http.guard import Dashboard, Guard
from sidecar.adapters.http.json_api import JsonApi
from sidecar.adapters.http.refusals import Refusal
from sidecar.model.errors import SidecarError

if TYPE_CHECKING:
    from sidecar.adapters.http.dashboard import DashboardFiles

log = structlog.get_logger()

# A body above the limit of a message gets an answer; above this the connection is closed.
LIMITS = bounded.HttpLimits(request_bytes=2 * MESSAGE_BYTES_MAX, request_seconds=30.0)


class WebApplication:
    """An ASGI application; `version` is that of the sidecar."""

    def __init__(
        self, api: JsonApi, guard: Guard, version: str, pages: "DashboardFiles | None" = None
    ) -> None:
        self._api = api
        self._pages = pages
        self._guard = guard
        self._version = version
        self._openapi: bytes | None = None

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._guard.check_host(request.headers)
            await self._answer(request, send)
        except Refusal as refusal:
            await refuse(send, refusal)

    async def _answer(self, request: Request, send: Send) -> None:
        path = request.scope["path"]
        if method := self._api.methods.get(path):
            await self._api.call(method, request, send)
        elif path == "/openapi.json":
            await respond(send, 200, await self._document())
        elif self._pages and self._pages.serves(path):
            await self._pages.answer(request, send)
        else:
            raise Refusal("unimplemented", "there is no such method or page", http_code=404)

    async def _document(self) -> bytes:
        if self._openapi is None:
            self._openapi = await asyncio.to_thread(self._built_document)
        return self._openapi

    def _built_document(self) -> bytes:
        from sidecar.adapters.http.openapi import document  # few ask for it

        return json.dumps(document(self._api.methods.values(), self._version)).encode()


async def serve(
    address: str,
    server: ApiServer,
    *,
    readers: Mapping[str, Any] | None = None,
    dashboard: Dashboard = "off",
    cluster: str = "",
    version: str = "",
    listening: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until cancelled; returns at once if the address cannot be used.

    `readers` are the servicers for what a browser reads.
    """
    guard = Guard(address, dashboard)
    api = JsonApi(server.services, server.token, server.admission, server.calls, guard, readers)
    path = socket_path(address)
    try:
        handle = _bound_file(path) if path else bounded.bound(address, "web.address")
    except SidecarError as error:
        log.warning("web_not_served", problem=str(error))
        return
    about = {"cluster": cluster, "dashboard": dashboard, "version": version}
    pages = None if dashboard == "off" else _pages(about | {"token": server.token.required})
    where = address if path else "{}:{}".format(*handle.getsockname()[:2])
    try:
        await bounded.serve(
            handle,
            WebApplication(api, guard, version, pages),
            LIMITS,
            listening=lambda: listening(where),
        )
    finally:
        if path:
            with suppress(OSError):
                path.unlink()


def _pages(about: Mapping[str, object]) -> "DashboardFiles":
    from sidecar.adapters.http.dashboard import DashboardFiles  # only where it is on

    return DashboardFiles(about)


def _bound_file(path: Path) -> socket:
    if problem := taken(path):
        raise SidecarError(f"web.address: cannot listen on unix://{path}: {problem}")
    try:
        return listening_file(path, SOCKET_MODE)
    except OSError as error:
        raise SidecarError(f"web.address: unix://{path} cannot be used: {error}") from None
