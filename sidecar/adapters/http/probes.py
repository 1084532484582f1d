"""Probes and metrics over HTTP: /livez /startupz /readyz /health /metrics.

Guarantees:
- handlers only read memory, so a probe answers in milliseconds even if a dependency hangs;
- metrics are rendered in a thread, one scrape at a time;
- requests are bounded (`adapters/http/bounded.py`): at most 32 KiB, complete within 10 s, 256
  connections; no handler reads a body.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sidecar.adapters.http import bounded
from sidecar.logs import visible
from sidecar.model.health import Readiness

LIMITS = bounded.HttpLimits(request_bytes=32 * 1024)
REASONS_MAX = 50
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class Sources(Protocol):
    """What the probes read. Each call answers at once, from memory."""

    def live(self) -> Readiness: ...
    def started(self) -> Readiness: ...
    def ready(self) -> Readiness: ...
    def report(self) -> Mapping[str, Any]: ...


async def serve(
    address: str,
    sources: Sources,
    registry: CollectorRegistry,
    *,
    listening: Callable[[int], None] = lambda _: None,
    limits: bounded.HttpLimits = LIMITS,
) -> None:
    """Serve until cancelled; `listening` is called with the port once connections are accepted."""
    handle = bounded.bound(address, "http.address")
    port = handle.getsockname()[1]
    await bounded.serve(
        handle, _application(sources, registry), limits, listening=lambda: listening(port)
    )


def _application(sources: Sources, registry: CollectorRegistry) -> Starlette:
    scrapes = _Scrapes(registry)

    def probe(read: Callable[[], Readiness]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return _verdict(request, read())

        return answer

    async def health(_: Request) -> Response:
        return _json(dict(sources.report()), 200)

    async def metrics(request: Request) -> Response:
        body, content_type = await scrapes.render(request.headers.get("accept", ""))
        return Response(body, headers=_HEADERS | {"content-type": content_type})

    return Starlette(
        routes=[
            Route("/livez", probe(sources.live)),
            Route("/startupz", probe(sources.started)),
            Route("/readyz", probe(sources.ready)),
            Route("/health", health),
            Route("/metrics", metrics),
        ]
    )


def _verdict(request: Request, verdict: Readiness) -> Response:
    """`ok`, or one reason per line; as JSON if the client accepts JSON.

    `?exclude=NAME` leaves a check out; `?verbose` lists every check, as Kubernetes' probes do.
    """
    excluded = request.query_params.getlist("exclude")
    left = verdict.without(excluded)
    status = 200 if left.good else 503
    if "application/json" in request.headers.get("accept", ""):
        return _json({"ok": left.good, "reasons": _first(left.reasons, left.more)}, status)
    lines = _first(left.reasons, left.more) or ["ok"]
    if "verbose" in request.query_params:
        lines = [*_listed(verdict, excluded), _summary(request, left)]
    text = "\n".join(lines) + "\n"
    return Response(text, status, headers=_HEADERS | {"content-type": "text/plain; charset=utf-8"})


def _first(reasons: Sequence[str], unlisted: int = 0) -> list[str]:
    shown = list(reasons[:REASONS_MAX])
    if more := len(reasons) - len(shown) + unlisted:
        shown.append(f"and {more} more")
    return shown


def _listed(verdict: Readiness, excluded: Sequence[str]) -> Iterator[str]:
    for name, reasons in verdict.checks.items():
        if name in excluded:
            yield f"[+]{name} excluded: {'failed' if reasons else 'ok'}"
        elif reasons:
            yield from (f"[-]{name} failed: {reason}" for reason in _first(reasons))
        else:
            yield f"[+]{name} ok"
    if unknown := [name for name in excluded if name not in verdict.checks]:
        yield f"warn: there is no check {', '.join(visible(name)[:40] for name in unknown[:10])}"


def _summary(request: Request, verdict: Readiness) -> str:
    probe = request.url.path.removeprefix("/")
    return f"{probe} check {'passed' if verdict.good else 'failed'}"


def _json(content: Mapping[str, Any], status: int) -> Response:
    body = json.dumps(content, default=str, ensure_ascii=False) + "\n"
    return Response(body, status, headers=_HEADERS | {"content-type": "application/json"})


class _Scrapes:
    """Renders the registry in a thread; concurrent requests share the result."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._running: dict[str, asyncio.Task[bytes]] = {}

    async def render(self, accept: str) -> tuple[bytes, str]:
        encode, content_type = _encoder(accept)
        task = self._running.get(content_type)
        if task is None:
            task = asyncio.create_task(
                asyncio.to_thread(encode, self._registry), name="http.scrape"
            )
            self._running[content_type] = task
            task.add_done_callback(lambda _: self._running.pop(content_type, None))
        # Shielded: a scraper that disconnects must not cancel the rendering for the others.
        return await asyncio.shield(task), content_type


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # it fails for versions that are not numbers
        return choose_encoder("")
