"""The dashboard's files: built from `dashboard/`, kept in memory, served with a strict policy.

Guarantees (G12): no script and no style but our own files, no other site, no frame around the page.
The files have no secret: the page asks the JSON API, with the token that its user entered.
"""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request

from sidecar.adapters.http.answers import Header, Send, respond
from sidecar.adapters.http.refusals import Refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SECURITY: tuple[Header, ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_KINDS = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}
_PAGE = re.compile(r"/(?:(?:runs|schedules|leadership|pods|state)(?:/[^/.]{1,64})?)?")


class DashboardFiles:
    """`about` is what the page knows before it calls anything."""

    def __init__(self, about: Mapping[str, object]) -> None:
        folder = files("sidecar.adapters.http") / "static"
        self._files = {
            f"/{entry.name}": entry.read_bytes()
            for entry in folder.iterdir()
            if entry.name.rpartition(".")[2] in _KINDS
        }
        self._about = json.dumps(dict(about)).encode()

    def serves(self, path: str) -> bool:
        return path in self._files or path == "/about.json" or bool(_PAGE.fullmatch(path))

    async def answer(self, request: Request, send: Send) -> None:
        path = request.scope["path"]
        if request.method not in ("GET", "HEAD"):
            raise Refusal("unimplemented", "pages are read with GET", http_code=405)
        if path == "/about.json":
            await respond(send, 200, self._about)
            return
        name = path if path in self._files else "/index.html"
        body = self._files[name]
        tag = f'"{sha256(body).hexdigest()[:16]}"'
        headers: tuple[Header, ...] = (
            (b"content-type", _KINDS[name.rpartition(".")[2]]),
            (b"cache-control", b"no-cache"),
            (b"etag", tag.encode()),
            *_SECURITY,
        )
        if request.headers.get("if-none-match") == tag:
            await respond(send, 304, b"", headers)
        else:
            await respond(send, 200, b"" if request.method == "HEAD" else body, headers)
