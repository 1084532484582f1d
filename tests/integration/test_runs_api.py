"""The Schedules and Runs services over a real gRPC server, on a real Postgres."""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import psycopg
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2, status_pb2

from sidecar._proto.baton.v1 import (
    runs_pb2,
    runs_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    singletons_pb2,
)
from sidecar.adapters.grpc_server.runs import RunsService
from sidecar.adapters.grpc_server.schedules import SchedulesService
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.grpc_server.singletons import SingletonsService
from sidecar.adapters.postgres.executions import Remembered
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.tokens import Token
from sidecar.config.secret import SecretSource
from sidecar.execution.runs import Runs
from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.election_types import LeaderView
from sidecar.model.health import EntityKey
from sidecar.model.run import ExecutionMetadata, Run
from sidecar.model.term import Term
from sidecar.scheduling import Schedules
from tests.integration.runs_lab import EVERY_HOUR, FakeApp, Lab, laboratory


@dataclass
class StaleReasons:
    """What the dead man's switch knows, and how often it was asked: each time it looks at all."""

    known: dict[EntityKey, str] = field(default_factory=dict)
    asked: int = 0

    def __call__(self) -> dict[EntityKey, str]:
        self.asked += 1
        return self.known


@dataclass
class Api:
    schedules: schedules_pb2_grpc.SchedulesStub
    runs: runs_pb2_grpc.RunsStub
    stale: StaleReasons


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


@pytest.fixture
async def api(lab: Lab, unused_tcp_port_factory: Callable[[], int]) -> AsyncIterator[Api]:
    address = f"127.0.0.1:{unused_tcp_port_factory()}"
    server = ApiServer(address, Token(SecretSource.of("")))
    stale = StaleReasons()
    schedules = SchedulesService(Schedules(lab.schedules, lab.hints, cluster="test"), stale)
    runs = RunsService(Runs(PostgresRunRecords(lab.database, lab.who), lab.hints))
    server.add(schedules_pb2_grpc.add_SchedulesServicer_to_server, schedules, "baton.v1.Schedules")
    server.add(runs_pb2_grpc.add_RunsServicer_to_server, runs, "baton.v1.Runs")
    await server.start()
    async with grpc.aio.insecure_channel(address) as channel:
        yield Api(schedules_pb2_grpc.SchedulesStub(channel), runs_pb2_grpc.RunsStub(channel), stale)
    await server.stop(0)


def stamp(instant: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(instant)
    return message


def details_of(error: grpc.aio.AioRpcError) -> list[Any]:
    metadata: Any = error.trailing_metadata() or ()
    found = (value for key, value in metadata if key == "grpc-status-details-bin")
    return list(status_pb2.Status.FromString(next(found, b"")).details)


def field_of(error: grpc.aio.AioRpcError) -> str:
    """The field that a refused request was wrong in."""
    for detail in details_of(error):
        request = error_details_pb2.BadRequest()
        if detail.Unpack(request):
            return str(request.field_violations[0].field)
    return ""


async def running(lab: Lab) -> tuple[Term, Run]:
    await lab.add(EVERY_HOUR)
    await lab.schedules.trigger("hourly", payload=None, request_id=None)
    term = await lab.term()
    return term, (await lab.runs.claim(term, limit=1)).runs[0]


async def test_a_schedule_comes_back_with_every_default(api: Api) -> None:
    sent = schedules_pb2.Schedule(name="daily", cron="0 2 * * *", timezone="Europe/Berlin")
    made = (
        await api.schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=sent))
    ).schedule
    assert (made.group, made.enabled, made.content_type) == ("default", True, "application/json")
    assert made.skip_if_older_than.seconds == 86_400
    assert (made.retry.attempts, made.retry.initial.seconds, made.retry.max.seconds) == (3, 1, 60)
    assert made.source == schedules_pb2.SCHEDULE_SOURCE_API
    assert made.next_run_at.ToDatetime(tzinfo=UTC) > datetime.now(UTC)
    assert not made.HasField("last_run_at")
    got = (await api.schedules.Get(schedules_pb2.SchedulesGetRequest(name="daily"))).schedule
    assert got == made
    again = (
        await api.schedules.Update(schedules_pb2.SchedulesUpdateRequest(schedule=got))
    ).schedule
    again.updated_at.CopyFrom(got.updated_at)
    assert again == got


async def test_every_kind_of_timing_survives_the_way_there_and_back(api: Api) -> None:
    tick = stamp(datetime(2030, 1, 1, tzinfo=UTC))
    for sent in (
        schedules_pb2.Schedule(name="at", at=tick),
        schedules_pb2.Schedule(name="every", every=Duration(seconds=1, nanos=500_000_000)),
        schedules_pb2.Schedule(name="cron", cron="H H * * *"),
    ):
        made = (
            await api.schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=sent))
        ).schedule
        timing = sent.WhichOneof("timing")
        assert made.WhichOneof("timing") == timing
        assert timing is not None
        assert getattr(made, timing) == getattr(sent, timing)


@pytest.mark.parametrize(
    ("field", "schedule"),
    [
        ("schedule.cron", schedules_pb2.Schedule(name="a", cron="never")),
        ("schedule", schedules_pb2.Schedule(name="a")),
        ("schedule.every", schedules_pb2.Schedule(name="a", every=Duration(seconds=-1))),
        ("schedule.every", schedules_pb2.Schedule(name="a", every=Duration(nanos=1))),
        ("schedule.at", schedules_pb2.Schedule(name="a", at=Timestamp(seconds=10**17))),
        ("schedule.name", schedules_pb2.Schedule(name="a" * 256, every=Duration(seconds=1))),
        ("schedule.catch_up", schedules_pb2.Schedule(name="a", cron="@daily", catch_up=99)),  # type: ignore[arg-type]
        ("schedule.ping_url", schedules_pb2.Schedule(name="a", cron="@daily", ping_url="ftp://x")),
        ("schedule.group", schedules_pb2.Schedule(name="a", cron="@daily", group="nowhere")),
    ],
)
async def test_a_bad_schedule_names_its_field(
    api: Api, field: str, schedule: schedules_pb2.Schedule
) -> None:
    """G11."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await api.schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=schedule))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field_of(refused.value) == field
    assert not (await api.schedules.List(schedules_pb2.SchedulesListRequest())).schedules


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("initial", b"NaN"),
        ("initial", b"1e999"),
        ("initial", b'{"a": -Infinity}'),
        ("initial", b'"\\u0000"'),
        ("initial", b'"\\\\\\u0000"'),
        ("initial", b'{"k\\u0000": 1}'),
        ("initial", b'["\\ud800"]'),
        ("initial", b'"' + b"x" * 1024 * 1024 + b'"'),
        ("schema", b'{"const": "\\u0000"}'),
        ("schema", b'{"title": "\\ud800"}'),
        ("schema", b'{"maximum": 1e999}'),
        ("schema", b'{"title": "' + b"x" * 1024 * 1024 + b'"}'),
    ],
)
async def test_a_state_that_cannot_be_kept_names_its_field(
    api: Api, field: str, state: bytes
) -> None:
    """G11: what Postgres would refuse, or 9.1 does not allow."""
    schedule = schedules_pb2.Schedule(name="a", cron="@daily")
    setattr(schedule.state, field, state)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await api.schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=schedule))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT, refused.value.details()
    assert field_of(refused.value) == f"schedule.state.{field}"
    assert not (await api.schedules.List(schedules_pb2.SchedulesListRequest())).schedules


@pytest.mark.parametrize(
    "initial", [b'"' + b"x" * (1024 * 1024 - 2) + b'"', b'"\\\\u0000"', b'"\\ud83d\\ude00"']
)
async def test_a_state_that_can_be_kept_is_kept(api: Api, initial: bytes) -> None:
    schedule = schedules_pb2.Schedule(name="a", cron="@daily")
    schedule.state.initial = initial
    made = await api.schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=schedule))
    assert json.loads(made.schedule.state.initial) == json.loads(initial)


async def test_pause_resume_trigger_delete(lab: Lab, api: Api) -> None:
    start_at = stamp(datetime.now(UTC) - timedelta(minutes=5))  # no tick while the test runs
    sent = schedules_pb2.Schedule(name="s", every=Duration(seconds=3600), start_at=start_at)
    await api.schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=sent))
    paused = await api.schedules.Pause(schedules_pb2.SchedulesPauseRequest(name="s", note="why"))
    assert (paused.schedule.paused, paused.schedule.pause_note) == (True, "why")
    assert not paused.schedule.HasField("next_run_at")
    run_id = (
        await api.schedules.Trigger(schedules_pb2.SchedulesTriggerRequest(name="s", payload=b"x"))
    ).run_id
    async with lab.leading(FakeApp()):
        await lab.ended()
    run = (await api.runs.Get(runs_pb2.RunsGetRequest(run_id=run_id))).run
    assert (run.kind, run.outcome) == (runs_pb2.RUN_KIND_TRIGGER, runs_pb2.OUTCOME_SUCCEEDED)
    assert [event.state for event in run.history] == [
        runs_pb2.RUN_STATE_QUEUED,
        runs_pb2.RUN_STATE_RUNNING,
        runs_pb2.RUN_STATE_ENDED,
    ]
    resumed = await api.schedules.Resume(schedules_pb2.SchedulesResumeRequest(name="s"))
    assert resumed.schedule.HasField("next_run_at")
    assert resumed.schedule.metadata.run_count == 1
    await api.schedules.Delete(schedules_pb2.SchedulesDeleteRequest(name="s"))
    gone = await api.schedules.Get(schedules_pb2.SchedulesGetRequest(name="s"))
    assert gone.schedule.HasField("retired_at")
    with pytest.raises(grpc.aio.AioRpcError) as missing:
        await api.schedules.Delete(schedules_pb2.SchedulesDeleteRequest(name="s"))
    assert missing.value.code() is grpc.StatusCode.NOT_FOUND


async def test_preview_and_backfill(lab: Lab, api: Api) -> None:
    await lab.add(Schedule(name="hourly", every_seconds=3600.0))
    after = datetime(2026, 1, 1, tzinfo=UTC)
    preview = await api.schedules.Preview(
        schedules_pb2.SchedulesPreviewRequest(name="hourly", n=3, after=stamp(after))
    )
    expected = [after + timedelta(hours=n) for n in (1, 2, 3)]
    assert [tick.ToDatetime(tzinfo=UTC) for tick in preview.ticks] == expected
    made = await api.schedules.Backfill(
        schedules_pb2.SchedulesBackfillRequest(
            name="hourly", from_at=stamp(after), to_at=stamp(after + timedelta(hours=3))
        )
    )
    assert len(made.run_ids) == 3
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await api.schedules.Backfill(schedules_pb2.SchedulesBackfillRequest(name="hourly"))
    assert field_of(refused.value) == "from_at"


async def test_lists_are_paged(lab: Lab, api: Api) -> None:
    await lab.add(EVERY_HOUR)
    for _ in range(5):
        await lab.schedules.trigger("hourly", payload=None, request_id=None)
    found: list[int] = []
    token = ""
    while True:
        page = await api.runs.List(runs_pb2.RunsListRequest(page_size=2, page_token=token))
        found += [run.run_id for run in page.runs]
        token = page.next_page_token
        if not token:
            break
    assert len(found) == 5
    assert found == sorted(found, reverse=True)
    waiting = runs_pb2.RunsListRequest(name="hourly", state=runs_pb2.RUN_STATE_RUNNING)
    assert not (await api.runs.List(waiting)).runs
    for request in (
        runs_pb2.RunsListRequest(page_size=-1),
        runs_pb2.RunsListRequest(page_token="x"),
        runs_pb2.RunsListRequest(outcome=99),  # type: ignore[arg-type]
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await api.runs.List(request)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_page_of_large_schedules_fits_into_a_message(lab: Lab, api: Api) -> None:
    for n in range(20):
        sent = schedules_pb2.Schedule(name=f"s{n:02}", cron="@daily", payload=b"x" * 256 * 1024)
        await api.schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=sent))
    names: list[str] = []
    token = ""
    while True:
        page = await api.schedules.List(schedules_pb2.SchedulesListRequest(page_token=token))
        names += [schedule.name for schedule in page.schedules]
        token = page.next_page_token
        if not token:
            break
    assert names == [f"s{n:02}" for n in range(20)]


async def test_a_page_of_runs_with_long_errors_fits_into_a_message(
    lab: Lab, api: Api, database_url: str
) -> None:
    await lab.add(EVERY_HOUR)
    await lab.schedules.trigger("hourly", payload=None, request_id=None)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "UPDATE baton.run SET error = repeat('x', 4096), progress_message = repeat('y', 255)"
        )
        cursor = await connection.execute(
            "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns"
            " WHERE (table_schema, table_name) = ('baton', 'run')"
            " AND column_name NOT IN ('id', 'request_id')"
        )
        (columns,) = await cursor.fetchone() or ("",)
        copied = f"INSERT INTO baton.run ({columns}) SELECT {columns} FROM baton.run"  # noqa: S608
        for _ in range(10):
            await connection.execute(copied.encode())
    found: list[int] = []
    token = ""
    while True:
        page = await api.runs.List(runs_pb2.RunsListRequest(page_size=1000, page_token=token))
        found += [run.run_id for run in page.runs]
        token = page.next_page_token
        if not token:
            break
    assert len(found) == len(set(found)) == 1024


async def test_a_page_of_singletons_with_long_errors_fits_into_a_message() -> None:
    failed = Remembered(ExecutionMetadata(last_error="x" * 4096))

    class Failed:
        async def of_singletons(self, names: Sequence[str]) -> dict[str, Remembered]:
            return dict.fromkeys(names, failed)

    declared = [Singleton(name=f"{n:0255}") for n in range(1000)]
    stale = StaleReasons({("singleton", declared[0].name): "no heartbeat"})
    nobody = LeaderView("default", False, "", "", 0, 0.0, False, None)
    service = SingletonsService(declared, Failed(), lambda _: nobody, stale)
    request = singletons_pb2.SingletonsListRequest(page_size=1000)
    names: list[str] = []
    while True:
        page = await service.List(request, None)
        assert page.ByteSize() < 4 * 1024 * 1024
        names += [singleton.name for singleton in page.singletons]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert names == [singleton.name for singleton in declared]
    assert stale.asked == 2


async def test_why_a_schedule_is_stale_is_asked_once_for_a_whole_page(lab: Lab, api: Api) -> None:
    """G8, G10: a page of thousands among thousands must not stop the loop that keeps the lease."""
    for name in ("one", "three", "two"):
        await lab.add(replace(EVERY_HOUR, name=name))
    api.stale.known = {
        ("schedule", "two"): "no success for 130 s, 120 s are allowed",
        ("singleton", "one"): "no heartbeat for 70 s, 60 s are allowed",
    }
    page = await api.schedules.List(schedules_pb2.SchedulesListRequest())
    assert api.stale.asked == 1
    assert [(each.name, each.stale, each.stale_reason) for each in page.schedules] == [
        ("one", False, ""),
        ("three", False, ""),
        ("two", True, "no success for 130 s, 120 s are allowed"),
    ]


def ref(run: Run) -> runs_pb2.RunRef:
    ref = run.ref
    return runs_pb2.RunRef(run_id=ref.run_id, attempt=ref.attempt, epoch=ref.epoch)


async def test_checkpoints_are_stored_once_and_only_for_the_live_attempt(
    lab: Lab, api: Api
) -> None:
    """G3: the same again is fine; another value and an old attempt are refused."""
    _, run = await running(lab)
    step = runs_pb2.RunsCheckpointRequest(run=ref(run), step="charge", value=b"1")
    await api.runs.Checkpoint(step)
    await api.runs.Checkpoint(step)
    step.value = b"2"
    with pytest.raises(grpc.aio.AioRpcError) as other:
        await api.runs.Checkpoint(step)
    assert other.value.code() is grpc.StatusCode.ALREADY_EXISTS
    (info,) = (detail for detail in details_of(other.value) if "ErrorInfo" in detail.type_url)
    told = error_details_pb2.ErrorInfo.FromString(info.value)
    assert b64decode(told.metadata["existing"]) == b"1"
    await lab.term()
    step.step = "later"
    with pytest.raises(grpc.aio.AioRpcError) as late:
        await api.runs.Checkpoint(step)
    assert late.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    stored = await lab.sql("SELECT step, value FROM baton.checkpoint")
    assert stored == [{"step": "charge", "value": b"1"}]


async def test_a_checkpoint_asked_for_again_while_it_is_under_way_is_stored_once(
    lab: Lab, api: Api
) -> None:
    """G7: a client that waited too long asks again before the first was carried out."""
    _, run = await running(lab)
    step = runs_pb2.RunsCheckpointRequest(run=ref(run), step="charge", value=b"1")
    other = runs_pb2.RunsCheckpointRequest(run=ref(run), step="charge", value=b"2")
    async with await psycopg.AsyncConnection.connect(lab.url) as connection:
        await connection.execute("SELECT 1 FROM baton.run FOR UPDATE")
        asked = [asyncio.ensure_future(api.runs.Checkpoint(one)) for one in (step, step, other)]
        await lab.until_waiting(2)  # the third waits in the sidecar
    answers = await asyncio.gather(*asked, return_exceptions=True)
    codes = sorted(a.code().name for a in answers if isinstance(a, grpc.aio.AioRpcError))
    (stored,) = await lab.sql("SELECT value FROM baton.checkpoint")
    assert codes == ["ALREADY_EXISTS"] * (1 if stored["value"] == b"1" else 2)


@pytest.mark.parametrize(
    ("count", "value"), [(999, b"1"), (0, b"x" * 1024 * 1024)], ids=["steps", "bytes"]
)
async def test_the_last_checkpoint_that_fits_may_be_asked_for_again_while_it_is_under_way(
    lab: Lab, api: Api, count: int, value: bytes
) -> None:
    """G7: that the run is full now is its own doing."""
    _, run = await running(lab)
    await lab.sql("UPDATE baton.run SET checkpoint_count = %(count)s", count=count)
    step = runs_pb2.RunsCheckpointRequest(run=ref(run), step="last", value=value)
    async with await psycopg.AsyncConnection.connect(lab.url) as connection:
        await connection.execute("SELECT 1 FROM baton.run FOR UPDATE")
        asked = [asyncio.ensure_future(api.runs.Checkpoint(step)) for _ in range(2)]
        await lab.until_waiting(2)
    await asyncio.gather(*asked)
    (stored,) = await lab.sql("SELECT step FROM baton.checkpoint")
    assert stored == {"step": "last"}


async def test_checkpoints_have_limits(lab: Lab, api: Api) -> None:
    _, run = await running(lab)
    half = b"x" * 512 * 1024
    for name in ("a", "b"):
        await api.runs.Checkpoint(
            runs_pb2.RunsCheckpointRequest(run=ref(run), step=name, value=half)
        )
    with pytest.raises(grpc.aio.AioRpcError) as full:
        await api.runs.Checkpoint(
            runs_pb2.RunsCheckpointRequest(run=ref(run), step="c", value=b"x")
        )
    assert full.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    await lab.sql("UPDATE baton.run SET checkpoint_bytes = 0, checkpoint_count = 1000")
    with pytest.raises(grpc.aio.AioRpcError) as many:
        await api.runs.Checkpoint(
            runs_pb2.RunsCheckpointRequest(run=ref(run), step="c", value=b"x")
        )
    assert many.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_heartbeat_reports_progress(lab: Lab, api: Api) -> None:
    _, run = await running(lab)
    await api.runs.Heartbeat(
        runs_pb2.RunsHeartbeatRequest(run=ref(run), progress=0.5, message="half")
    )
    await api.runs.Heartbeat(runs_pb2.RunsHeartbeatRequest(run=ref(run)))
    found = (await api.runs.Get(runs_pb2.RunsGetRequest(run_id=run.ref.run_id))).run
    assert (found.progress, found.progress_message) == (0.5, "half")
    for request, code in (
        (runs_pb2.RunsHeartbeatRequest(), grpc.StatusCode.INVALID_ARGUMENT),
        (
            runs_pb2.RunsHeartbeatRequest(run=ref(run), progress=1.5),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (
            runs_pb2.RunsHeartbeatRequest(run=runs_pb2.RunRef(run_id=1, attempt=9, epoch=1)),
            grpc.StatusCode.FAILED_PRECONDITION,
        ),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await api.runs.Heartbeat(request)
        assert refused.value.code() is code


async def test_cancel_and_retry_say_why_not(lab: Lab, api: Api) -> None:
    _, run = await running(lab)
    run_id = run.ref.run_id
    asked = (await api.runs.Cancel(runs_pb2.RunsCancelRequest(run_id=run_id, note="stop"))).run
    assert asked.cancel_requested
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await api.runs.Retry(runs_pb2.RunsRetryRequest(run_id=run_id))
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    for call in (
        api.runs.Get(runs_pb2.RunsGetRequest(run_id=99)),
        api.runs.Cancel(runs_pb2.RunsCancelRequest(run_id=99)),
        api.runs.Retry(runs_pb2.RunsRetryRequest(run_id=99)),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as missing:
            await call
        assert missing.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_life_of_a_singleton_is_a_run(lab: Lab, api: Api) -> None:
    """A life that nobody ended is over with the next, and remembered like one that failed."""
    term = await lab.term()
    first = await lab.runs.start_singleton(term, "coordinator")
    assert first.metadata.run_count == 0
    second = await lab.runs.start_singleton(await lab.term(), "coordinator")
    assert second.metadata.run_count == 1
    assert second.metadata.last_run_at == first.scheduled_at
    assert second.metadata.last_error == "its term ended before it did"
    (kept,) = await lab.sql("SELECT last_run_at, run_count, last_error FROM baton.execution")
    assert kept == {
        "last_run_at": second.scheduled_at,
        "run_count": 1,
        "last_error": "its term ended before it did",
    }
    rows = (await api.runs.List(runs_pb2.RunsListRequest(name="coordinator"))).runs
    assert [(run.run_id, run.state) for run in rows] == [
        (second.ref.run_id, runs_pb2.RUN_STATE_RUNNING),
        (first.ref.run_id, runs_pb2.RUN_STATE_ENDED),
    ]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await api.runs.Cancel(runs_pb2.RunsCancelRequest(run_id=second.ref.run_id))
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
