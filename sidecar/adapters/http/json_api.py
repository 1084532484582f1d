"""The API as JSON over HTTP, in the style of Connect: `POST /baton.v1.Runs/List`.

It calls the servicers of the gRPC server. Guarantees:
- token, admission and limits are those of the gRPC server; so are codes, messages and details of
  errors. A call without the token is refused before its body is read;
- one request is at most 4 MiB of JSON; big messages are converted in a thread, so that a call
  delays neither a tick nor a ping;
- a server stream is sent as server-sent events: one `message` event per message, then an `error`
  event if it ends with an error. A comment every 15 s shows that it is alive.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import structlog
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from starlette.requests import ClientDisconnect, Request

from sidecar.adapters.grpc_app import MESSAGE_BYTES_MAX
from sidecar.adapters.grpc_server.admission import is_essential
from sidecar.adapters.grpc_server.calls import Calls
from sidecar.adapters.grpc_server.status import log_bug
from sidecar.adapters.http.answers import Send, refuse, respond
from sidecar.adapters.http.events import EventStream
from sidecar.adapters.http.guard import Guard, is_browser
from sidecar.adapters.http.methods import Method, methods_of
from sidecar.adapters.http.refusals import Refusal, refusal_of
from sidecar.adapters.tokens import METADATA_KEY, Token
from sidecar.logs import visible
from sidecar.model.admission import Admission, Stream
from sidecar.model.errors import DeadlineExceeded, InvalidArgument, Overloaded, SidecarError

log = structlog.get_logger()

IN_LOOP_BYTES_MAX = 32 * 1024  # about a millisecond; bigger messages are converted in a thread
_CONVERSIONS_MAX = 2
_USER_CHARACTERS_MAX = 100
_TIMEOUT_DIGITS_MAX = 10


class CallContext:
    """What servicers use of gRPC's context."""

    def __init__(self, peer: str, events: EventStream | None = None) -> None:
        self._peer = peer
        self._events = events

    def peer(self) -> str:
        return self._peer

    async def send_initial_metadata(self, _: object) -> None:
        if self._events:
            await self._events.start()


class JsonApi:
    """`services` are the servicers of the gRPC server by their full names.

    `readers` serve what a browser reads, apart from all other callers.
    """

    def __init__(
        self,
        services: Mapping[str, Any],
        token: Token,
        admission: Admission,
        calls: Calls,
        guard: Guard,
        readers: Mapping[str, Any] | None = None,
    ) -> None:
        self.methods = {method.path: method for method in methods_of(services)}
        self._services = services
        self._readers = {**services, **(readers or {})}
        self._token = token
        self._admission = admission
        self._calls = calls
        self._guard = guard
        self._converting = asyncio.Semaphore(_CONVERSIONS_MAX)

    async def call(self, method: Method, request: Request, send: Send) -> None:
        """Answer one call; nothing is raised but the cancellation of the task."""
        try:
            self._check(method, request)
            text = await _body(request)
            if method.streams:
                await self._stream(method, text, request, send)
                return
            answer = await self._unary(method, text, request)
        except ClientDisconnect:
            return
        except Exception as error:
            await refuse(send, self._refused(error))
        else:
            await respond(send, 200, answer)

    def _check(self, method: Method, request: Request) -> None:
        if request.method != "POST":
            raise Refusal("unimplemented", "methods are called with POST", http_code=405)
        if not _is_json(request.headers.get("content-type", "")):
            raise Refusal(
                "invalid_argument", "the Content-Type must be application/json", http_code=415
            )
        self._guard.check_call(request.headers, method)
        if not self._token.accepts(((METADATA_KEY, _bearer(request)),)):
            raise Refusal(
                "unauthenticated",
                "the call must have the API's token in the header 'Authorization: Bearer TOKEN'",
            )

    async def _unary(self, method: Method, text: bytes, request: Request) -> bytes:
        with self._calls.under_way(), self._admission.call(essential=is_essential(method.path)):
            message = await self._decoded(method, text)
            async with _deadline(request):
                handler = self._handler(method, request)
                answer = await handler(message, CallContext(_peer(request)))
            self._log_action(method, message, request)
            return await self._encoded(answer)

    async def _stream(self, method: Method, text: bytes, request: Request, send: Send) -> None:
        events = EventStream(request, send)
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        stream = Stream(_peer(request), authenticated=True, end=task.cancel)
        try:
            with self._calls.under_way(), self._admission.stream(stream):
                message = await self._decoded(method, text)
                handler = self._handler(method, request)
                answers = handler(message, CallContext(_peer(request), events))
                await events.send_all(self._each_encoded(answers))
        except asyncio.CancelledError:
            if not stream.ended:
                raise
            task.uncancel()
            closed = Overloaded("memory is short on this pod: streams are closed")
            await events.end(self._refused(closed))
        except Exception as error:
            await events.end(self._refused(error))

    async def _each_encoded(self, answers: AsyncIterator[Message]) -> AsyncGenerator[bytes, None]:
        async for answer in answers:
            yield await self._encoded(answer)

    def _handler(self, method: Method, request: Request) -> Any:
        looks = method.reads and is_browser(request.headers)
        services = self._readers if looks else self._services
        return getattr(services[method.service], method.name)

    def _refused(self, error: Exception) -> Refusal:
        if not isinstance(error, Refusal | SidecarError):
            log_bug(error)
        return refusal_of(error)

    async def _decoded(self, method: Method, text: bytes) -> Message:
        if len(text) <= IN_LOOP_BYTES_MAX:
            return _decode(method.request, text)
        async with self._converting:
            return await asyncio.to_thread(_decode, method.request, text)

    async def _encoded(self, message: Message) -> bytes:
        if message.ByteSize() <= IN_LOOP_BYTES_MAX:
            return _encode(message)
        async with self._converting:
            return await asyncio.to_thread(_encode, message)

    def _log_action(self, method: Method, message: Message, request: Request) -> None:
        """Who changed what through the dashboard; programs are not logged call by call."""
        if method.reads or not is_browser(request.headers):
            return
        user = request.headers.get("baton-user", "")[:_USER_CHARACTERS_MAX]
        log.info(
            "dashboard_action",
            method=method.path.removeprefix("/"),
            user=visible(user) or "unknown",
            peer=_peer(request),
            subject=_subject(message),
        )


def _decode(kind: type[Message], text: bytes) -> Message:
    try:
        content = json.loads(text or b"{}")
        if not isinstance(content, dict):
            raise InvalidArgument("request", "is not a JSON object")
        return ParseDict(content, kind())
    except ParseError as error:
        raise InvalidArgument("request", str(error)) from None
    except RecursionError:
        raise InvalidArgument("request", "is nested too deeply") from None
    except ValueError as error:  # no JSON, or not in UTF-8
        raise InvalidArgument("request", f"is not JSON: {error}") from None


def _encode(message: Message) -> bytes:
    return json.dumps(MessageToDict(message), ensure_ascii=False, separators=(",", ":")).encode()


async def _body(request: Request) -> bytes:
    """The whole body; RESOURCE_EXHAUSTED above the limit, as gRPC answers it."""
    body, length = bytearray(), 0
    async for chunk in request.stream():
        length += len(chunk)
        if length <= MESSAGE_BYTES_MAX:
            body += chunk
    # Read to its end: a client that is still sending would not see the answer.
    if length > MESSAGE_BYTES_MAX:
        raise Refusal("resource_exhausted", f"the request exceeds {MESSAGE_BYTES_MAX} bytes")
    return bytes(body)


def _is_json(content_type: str) -> bool:
    kind, _, parameters = content_type.partition(";")
    charset = parameters.replace(" ", "").lower()
    return kind.strip().lower() == "application/json" and charset in ("", "charset=utf-8")


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _peer(request: Request) -> str:
    client = request.client
    return f"{client.host}:{client.port}" if client else "unix"


@asynccontextmanager
async def _deadline(request: Request) -> AsyncIterator[None]:
    """The limit that the caller set with `Connect-Timeout-Ms`."""
    text = request.headers.get("connect-timeout-ms", "")
    if text and not (text.isascii() and text.isdecimal() and len(text) <= _TIMEOUT_DIGITS_MAX):
        raise InvalidArgument("Connect-Timeout-Ms", "is not a number of milliseconds")
    limit = asyncio.timeout(int(text) / 1000 if text else None)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise DeadlineExceeded("the caller's Connect-Timeout-Ms has passed") from None


def _subject(message: Message) -> str:
    """What an action is about: the fields of the request that name something."""
    named = []
    for name in ("name", "group", "run_id", "key", "note"):
        with suppress(AttributeError):
            if value := getattr(message, name):
                named.append(f"{name}={value}")
    return visible(" ".join(named))[:300]
