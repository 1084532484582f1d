"""The JSON API on a real port, in front of servicers that are registered with the gRPC server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from devtools.servers import free_port
from sidecar._proto.baton.v1 import (
    ids_pb2,
    ids_pb2_grpc,
    leadership_pb2,
    leadership_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
)
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.http import events, web
from sidecar.adapters.http.guard import Dashboard
from sidecar.adapters.tokens import Token
from sidecar.config import SecretSource
from sidecar.model.errors import FailedPrecondition, InvalidArgument, NotFound, StoreUnavailable
from tests.lab.web import Answer, ask, head, open_connection

ERRORS = {
    "missing": (NotFound("there is no group 'missing'"), "not_found", 404),
    "away": (StoreUnavailable("Postgres does not answer"), "unavailable", 503),
    "wrong": (InvalidArgument("group", "is wrong"), "invalid_argument", 400),
    "over": (FailedPrecondition("nobody leads"), "failed_precondition", 400),
    "bug": (ZeroDivisionError("secret inside"), "internal", 500),
}


class Leadership(leadership_pb2_grpc.LeadershipServicer):
    """Answers with the group that it is asked for, or with the error of that name."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.hold = asyncio.Event()

    async def Get(self, request: leadership_pb2.LeadershipGetRequest, context: Any) -> Any:
        if request.group in ERRORS:
            raise ERRORS[request.group][0]
        if request.group == "slow":
            await asyncio.sleep(60)
        leader = leadership_pb2.Leader(group=request.group, epoch=2**60)
        return leadership_pb2.LeadershipGetResponse(leader=leader)

    async def Watch(
        self, request: leadership_pb2.LeadershipWatchRequest, context: Any
    ) -> AsyncIterator[Any]:
        try:
            if request.group in ERRORS:
                raise ERRORS[request.group][0]
            for epoch in (1, 2):
                leader = leadership_pb2.Leader(group=request.group, epoch=epoch)
                yield leadership_pb2.LeadershipWatchResponse(leader=leader)
            if request.group == "breaks":
                raise ERRORS["away"][0]
            if request.group == "endless":
                await self.hold.wait()
        finally:
            self.closed.set()


class Ids(ids_pb2_grpc.IdsServicer):
    async def Generate(self, request: ids_pb2.IdsGenerateRequest, context: Any) -> Any:
        return ids_pb2.IdsGenerateResponse(ids=range(request.count))


class Schedules(schedules_pb2_grpc.SchedulesServicer):
    async def Pause(self, request: schedules_pb2.SchedulesPauseRequest, context: Any) -> Any:
        schedule = schedules_pb2.Schedule(name=request.name, pause_note=request.note)
        return schedules_pb2.SchedulesPauseResponse(schedule=schedule)


class Web:
    """A web server in front of an API server that is not started: only its servicers are used."""

    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self.leadership = Leadership()
        self.api: ApiServer

    async def start(
        self, address: str = "", token: Path | None = None, dashboard: Dashboard = "off"
    ) -> str:
        address = address or f"127.0.0.1:{free_port()}"
        source = SecretSource.from_file(str(token)) if token else SecretSource()
        self.api = ApiServer("127.0.0.1:0", Token(source))
        self.api.add(
            leadership_pb2_grpc.add_LeadershipServicer_to_server,
            self.leadership,
            "baton.v1.Leadership",
        )
        self.api.add(ids_pb2_grpc.add_IdsServicer_to_server, Ids(), "baton.v1.Ids")
        self.api.add(
            schedules_pb2_grpc.add_SchedulesServicer_to_server, Schedules(), "baton.v1.Schedules"
        )
        where: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        served = web.serve(
            address, self.api, dashboard=dashboard, version="1.2.3", listening=where.set_result
        )
        task = asyncio.create_task(served)
        task.add_done_callback(lambda _: where.cancel())
        self.stack.push_async_callback(asyncio.wait, {task})
        self.stack.callback(task.cancel)
        return await where


@pytest.fixture
async def lab() -> AsyncIterator[Web]:
    one = Web()
    async with one.stack:
        yield one
        one.leadership.hold.set()


GET = "/baton.v1.Leadership/Get"
WATCH = "/baton.v1.Leadership/Watch"


async def test_a_call_is_json_both_ways(lab: Web) -> None:
    answer = await ask(await lab.start(), GET, {"group": "orders"})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"leader": {"group": "orders", "epoch": str(2**60)}}
    assert "server" not in answer.headers


@pytest.mark.parametrize("group", ERRORS)
async def test_errors_have_the_codes_of_connect(lab: Web, group: str) -> None:
    """The same code, message and details as over gRPC."""
    _, code, status = ERRORS[group]
    answer = await ask(await lab.start(), GET, {"group": group})
    assert (answer.status, answer.json()["code"]) == (status, code)
    details = {each["type"]: each["debug"] for each in answer.json().get("details", ())}
    if code == "internal":
        assert b"secret" not in answer.body
        assert not details
        return
    assert details["google.rpc.ErrorInfo"]["domain"] == "baton"
    if group == "wrong":
        (violation,) = details["google.rpc.BadRequest"]["fieldViolations"]
        assert violation == {"field": "group", "description": "is wrong"}
    if group == "away":
        assert details["google.rpc.RetryInfo"] == {"retryDelay": "1s"}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"unknown": 1}',
        b'{"group": 7}',
        b'{"group": "\\ud800"}',
        b"[" * 100_000,
        b'{"group": {"a": ' + b'{"a":' * 5000,
        b'{"group": NaN}',
    ],
)
async def test_bad_json_gets_a_clear_error(lab: Web, body: bytes) -> None:
    """G11: nothing that a caller sends ends in a traceback."""
    answer = await ask(await lab.start(), GET, body)
    assert (answer.status, answer.json()["code"]) == (400, "invalid_argument"), answer.body
    assert answer.json()["message"].startswith("request: ")


async def test_only_post_with_json_is_a_call(lab: Web) -> None:
    address = await lab.start()
    assert (await ask(address, GET, method="GET")).status == 405
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=x"):
        assert (await ask(address, GET, b"{}", content_type=kind)).status == 415
    assert (await ask(address, GET, b"{}", content_type="Application/JSON;charset=UTF-8")).status
    unknown = await ask(address, "/baton.v1.Leadership/Nothing", b"{}")
    assert (unknown.status, unknown.json()["code"]) == (404, "unimplemented")


async def test_the_token_is_required(lab: Web, tmp_path: Path) -> None:
    """G12: it is the API's; a call without it is refused before its body is read."""
    (tmp_path / "token").write_text("correct-horse\n")
    address = await lab.start(token=tmp_path / "token")
    for given in ("", "Bearer wrong", "Basic correct-horse", "correct-horse"):
        answer = await ask(address, GET, {"group": "a"}, authorization=given)
        assert (answer.status, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"
    huge = await ask(address, GET, b"{" * 100)
    assert huge.status == 401
    right = await ask(address, GET, {"group": "a"}, authorization="Bearer correct-horse")
    assert right.status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9402", 200),
        ("127.0.0.1:1", 200),
        ("127.8.9.1", 200),
        ("[::1]:9402", 200),
        ("evil.example", 403),
        ("evil.example:9402", 403),
        ("localhost.evil.example", 403),
        ("10.0.0.8:9402", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
async def test_a_foreign_host_is_refused(lab: Web, host: str, status: int) -> None:
    """G12: a name of somebody else that leads here (DNS rebinding) opens nothing."""
    assert (await ask(await lab.start(), GET, {"group": "a"}, host=host)).status == status


async def test_a_browser_may_do_what_the_dashboard_may(lab: Web) -> None:
    """G12: pages of other sites may do nothing at all."""
    pause, own = "/baton.v1.Schedules/Pause", {"sec_fetch_site": "same-origin"}
    address = await lab.start(dashboard="off")
    assert (await ask(address, pause, {"name": "a"})).status == 200  # a program
    assert (await ask(address, GET, {"group": "a"}, **own)).status == 403
    allowed: dict[Dashboard, int] = {"read": 403, "operate": 200}
    for dashboard, status in allowed.items():
        address = await lab.start(dashboard=dashboard)
        origin = f"http://{address}"
        assert (await ask(address, GET, {}, host=address, origin=origin, **own)).status == 200
        assert (await ask(address, pause, {"name": "a"}, **own)).status == status
        foreign = await ask(address, GET, {}, host=address, origin="http://evil.example", **own)
        assert foreign.status == 403
        for site in ("cross-site", "same-site"):
            assert (await ask(address, GET, {}, sec_fetch_site=site)).status == 403
        preflight = await ask(address, GET, method="OPTIONS", origin="http://evil.example")
        assert preflight.status in (403, 405)
        assert not any(name.startswith("access-control") for name in preflight.headers)


async def test_actions_of_the_dashboard_are_logged_with_who_did_them(lab: Web) -> None:
    address = await lab.start(dashboard="operate")
    with capture_logs() as logs:
        await ask(
            address,
            "/baton.v1.Schedules/Pause",
            {"name": "mail", "note": "on \u202e fire"},
            sec_fetch_site="same-origin",
            baton_user="Ada",
        )
        await ask(address, "/baton.v1.Schedules/Pause", {"name": "by-a-program"})
        await ask(address, GET, {"group": "a"}, sec_fetch_site="same-origin")
    (event,) = (one for one in logs if one["event"] == "dashboard_action")
    assert (event["method"], event["user"]) == ("baton.v1.Schedules/Pause", "Ada")
    assert event["subject"].startswith("name=mail note=on ")
    assert "\u202e" not in event["subject"]


def events_of(answer: Answer) -> list[tuple[str, Any]]:
    text = answer.body.decode()
    if answer.headers.get("transfer-encoding") == "chunked":
        text = "".join(text.split("\r\n")[1::2])
    found = []
    for block in text.split("\n\n"):
        lines = (line.split(": ", 1) for line in block.split("\n") if line[:1] not in ("", ":"))
        fields = dict(lines)
        if "data" in fields:
            found.append((fields.get("event", "message"), json.loads(fields["data"])))
    return found


async def test_a_stream_is_sent_as_events(lab: Web) -> None:
    address = await lab.start()
    answer = await ask(address, WATCH, {"group": "a"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert events_of(answer) == [
        ("message", {"leader": {"group": "a", "epoch": str(epoch)}}) for epoch in (1, 2)
    ]
    *_, (kind, last) = events_of(await ask(address, WATCH, {"group": "breaks"}))
    assert (kind, last["code"]) == ("error", "unavailable")
    early = await ask(address, WATCH, {"group": "missing"})
    assert (early.status, early.json()["code"]) == (404, "not_found")


async def test_a_stream_shows_life_and_ends_with_its_reader(
    lab: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "ALIVE_SECONDS", 0.05)
    address = await lab.start()
    reader, writer = await open_connection(address)
    body = b'{"group": "endless"}'
    writer.write(head("POST", WATCH, body, {}) + body)
    async with asyncio.timeout(30):
        await reader.readuntil(b": alive")
        assert lab.api.admission.streams == 1
        writer.close()
        await lab.leadership.closed.wait()
        while lab.api.admission.streams:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)


async def test_streams_end_with_a_reason_when_memory_is_short(lab: Web) -> None:
    address = await lab.start()
    asked = asyncio.create_task(ask(address, WATCH, {"group": "endless"}))
    while not lab.api.admission.streams:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    lab.api.admission.record_memory(2, 1)
    *_, (kind, last) = events_of(await asked)
    assert (kind, last["code"]) == ("error", "resource_exhausted")
    refused = await ask(address, "/baton.v1.Ids/Generate", {"count": 1})
    assert (refused.status, refused.json()["code"]) == (429, "resource_exhausted")
    assert (await ask(address, GET, {"group": "a"})).status == 200  # essential


async def test_a_stop_ends_calls_with_a_reason(lab: Web) -> None:
    address = await lab.start()
    asked = asyncio.create_task(ask(address, GET, {"group": "slow"}))
    await asyncio.sleep(0.2)
    lab.api.calls.end()
    answer = await asked
    assert (answer.status, answer.json()["code"]) == (503, "unavailable")


async def test_messages_are_limited_as_over_grpc(lab: Web) -> None:
    address = await lab.start()
    body = json.dumps({"group": "a" * (4 * 1024 * 1024)}).encode()
    answer = await ask(address, GET, body)
    assert (answer.status, answer.json()["code"]) == (429, "resource_exhausted")
    near = json.dumps({"group": "a" * (4 * 1024 * 1024 - 100)}).encode()
    assert len((await ask(address, GET, near)).body) > len(near)


async def test_a_caller_sets_its_own_deadline(lab: Web) -> None:
    address = await lab.start()
    answer = await ask(address, GET, {"group": "slow"}, connect_timeout_ms="50")
    assert (answer.status, answer.json()["code"]) == (504, "deadline_exceeded")
    assert (await ask(address, GET, {}, connect_timeout_ms="soon")).status == 400


async def test_a_big_answer_does_not_hold_up_the_loop(lab: Web) -> None:
    """It is converted in a thread: ticks and pings come between."""
    address = await lab.start()
    longest, last = 0.0, asyncio.get_running_loop().time()
    asked = asyncio.create_task(ask(address, "/baton.v1.Ids/Generate", {"count": 300_000}))
    while not asked.done():
        await asyncio.sleep(0.001)
        now = asyncio.get_running_loop().time()
        longest, last = max(longest, now - last), now
    assert len((await asked).json()["ids"]) == 300_000
    assert longest < 1.0


async def test_a_socket_file_serves_it_too(lab: Web, tmp_path: Path) -> None:
    path = tmp_path / "web.sock"
    address = await lab.start(f"unix://{path}")
    assert oct(path.stat().st_mode & 0o777) == "0o660"
    assert (await ask(address, GET, {"group": "a"})).status == 200
    assert (await ask(address, GET, {"group": "a"}, host="evil.example")).status == 403
    await lab.stack.aclose()
    assert not path.exists()


async def test_an_address_in_use_costs_the_web_only(lab: Web) -> None:
    address = await lab.start()
    with capture_logs() as logs:
        async with asyncio.timeout(10):
            await web.serve(address, lab.api)
    (event,) = (one for one in logs if one["event"] == "web_not_served")
    assert "in use by another process" in event["problem"]


async def test_the_openapi_document_is_served(lab: Web) -> None:
    answer = await ask(await lab.start(), "/openapi.json")
    document = answer.json()
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.2.3")
    assert GET in document["paths"]


async def test_the_same_servicer_answers_over_grpc(lab: Web, tmp_path: Path) -> None:
    address = await lab.start()
    api = ApiServer(f"unix://{tmp_path}/api.sock", Token(SecretSource()))
    api.add(
        leadership_pb2_grpc.add_LeadershipServicer_to_server, lab.leadership, "baton.v1.Leadership"
    )
    await api.start()
    try:
        async with grpc.aio.insecure_channel(f"unix://{tmp_path}/api.sock") as channel:
            stub: Any = leadership_pb2_grpc.LeadershipStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await stub.Get(leadership_pb2.LeadershipGetRequest(group="wrong"))
    finally:
        await api.stop(0)
    over_http = (await ask(address, GET, {"group": "wrong"})).json()
    assert raised.value.details() == over_http["message"]


async def test_the_pages_are_served_with_a_strict_policy(lab: Web) -> None:
    """G12: no other script, no frame; with the dashboard off there are none."""
    assert (await ask(await lab.start(), "/")).status == 404
    address = await lab.start(dashboard="read")
    page = await ask(address, "/runs/123?x=1")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert b"<script>" not in page.body
    assert b"style=" not in page.body
    size = len(page.body)
    for name, kind in (("app.js", "text/javascript"), ("style.css", "text/css")):
        file = await ask(address, f"/{name}")
        assert file.headers["content-type"].startswith(kind)
        same = await ask(address, f"/{name}", if_none_match=file.headers["etag"])
        assert (same.status, same.body) == (304, b"")
        assert b"http://" not in file.body.replace(b"http://www.w3.org/", b"")
        size += len(file.body)
    assert size < 200_000
    assert (await ask(address, "/about.json")).json()["dashboard"] == "read"
    for path in ("/nothing.js", "/../web.py", "/static/app.js", "/runs/a/b"):
        assert (await ask(address, path)).status == 404
    assert (await ask(address, "/", host="evil.example")).status == 403
    assert (await ask(address, "/", b"{}")).status == 405
