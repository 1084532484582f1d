"""What people look at, from a real Postgres: terms, runners, steps, statistics, deferreds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    leadership_pb2,
    runners_pb2,
    runs_pb2,
    schedules_pb2,
)
from sidecar.adapters.grpc_server.deferreds import DeferredsService
from sidecar.adapters.grpc_server.reports import RunnersService, history, stats
from sidecar.adapters.grpc_server.runs import RunsService
from sidecar.adapters.grpc_server.schedules import SchedulesService
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.leader_lock import LeaderLock
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.reports import PostgresReports
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.deferreds import Deferreds
from sidecar.execution.runs import Runs
from sidecar.model.election_types import Poll, Release, Taken, Takeover, Timers
from sidecar.model.errors import InvalidArgument
from sidecar.scheduling.catalogue import Schedules
from tests.integration.runs_lab import EVERY_HOUR, Lab, laboratory


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


@pytest.fixture
def reports(lab: Lab) -> PostgresReports:
    return PostgresReports(lab.database, lab.who)


async def _lead(database_url: str, group_id: int, runner: str, *, why: str = "") -> int:
    """One term; the epoch. Without `why` its leader is gone without a word."""
    lock = LeaderLock(
        lambda: database_url, schema="baton", channel="c", runner_id=runner, host=f"{runner}.host",
        timers=Timers(),
    )  # fmt: skip
    await lock.open()
    try:
        while True:
            rows = await lock.execute(Poll((group_id,), (group_id,)))
            if isinstance(rows, list) and rows[0].locked:
                break
            await asyncio.sleep(0.02)
        taken = await lock.execute(Takeover(group_id))
        assert isinstance(taken, Taken)
        if why:
            await lock.execute(Release(group_id, taken.epoch, clean=True, why=why))
        return taken.epoch
    finally:
        await lock.close()


async def test_terms_are_remembered_with_their_ends(
    lab: Lab, reports: PostgresReports, database_url: str
) -> None:
    """A leader that released says why; one that could not is ended by its successor."""
    group = (await lab.who()).groups["default"]
    epochs = [
        await _lead(database_url, group, "a", why="resigned"),
        await _lead(database_url, group, "b"),
        await _lead(database_url, group, "c"),
    ]
    request = leadership_pb2.LeadershipHistoryRequest(page_size=2)
    page = await history(reports, request)
    assert [term.epoch for term in page.terms] == [epochs[2], epochs[1]]
    request.page_token = page.next_page_token
    rest = await history(reports, request)
    terms = {term.runner_id: term for term in (*page.terms, *rest.terms)}
    assert {name: term.end_reason for name, term in terms.items()} == {
        "a": "resigned", "b": "lost", "c": "",
    }  # fmt: skip
    assert terms["a"].ended_at.ToDatetime() >= terms["a"].taken_at.ToDatetime()
    assert terms["b"].ended_at.ToDatetime() <= terms["c"].taken_at.ToDatetime()
    assert not terms["c"].HasField("ended_at")
    assert terms["a"].host == "a.host"
    other = leadership_pb2.LeadershipHistoryRequest(group="no such group")
    assert not (await history(reports, other)).terms


async def test_only_the_newest_terms_are_kept(
    lab: Lab, reports: PostgresReports, database_url: str
) -> None:
    group = (await lab.who()).groups["default"]
    await lab.sql(
        "INSERT INTO baton.term_history (group_id, epoch, runner_id, host, taken_at, ended_at)"
        " SELECT %(group)s, n, 'old', 'host', now(), now() FROM generate_series(1, 1500) AS n",
        group=group,
    )
    await _lead(database_url, group, "a")
    await _lead(database_url, group, "b")
    ((row),) = await lab.sql("SELECT count(*) AS n, min(epoch) AS first FROM baton.term_history")
    assert (row["n"], row["first"]) == (1001, 502)


async def test_runners_say_what_they_are(lab: Lab, reports: PostgresReports) -> None:
    identity = await lab.who()
    for name, healthy in (("a", True), ("b", False), ("c", None)):
        member = Membership(lab.database, runner_id=name, host="h", version="1")
        await member.beat(identity, campaigning=bool(healthy), config_revision=7, healthy=healthy)
    await lab.sql(
        "UPDATE baton.runner SET seen_at = now() - interval '1 minute' WHERE runner_id = 'b'"
    )
    await lab.sql(
        "UPDATE baton.term SET runner_id = 'a', clean = false WHERE group_id = %(group)s",
        group=identity.groups["default"],
    )
    service = RunnersService(reports, "a")
    answer = await service.List(runners_pb2.RunnersListRequest(page_size=2), None)
    first, second = answer.runners
    assert (first.runner_id, first.alive, first.healthy, first.campaigning) == (
        "a",
        True,
        True,
        True,
    )
    assert (first.self, list(first.leads), first.config_revision) == (True, ["default"], 7)
    assert (second.alive, second.healthy, second.self, list(second.leads)) == (False,) * 3 + ([],)
    request = runners_pb2.RunnersListRequest(page_size=2, page_token=answer.next_page_token)
    (third,) = (await service.List(request, None)).runners
    assert (third.runner_id, third.HasField("healthy")) == ("c", False)


async def test_steps_have_their_time_and_attempt(lab: Lab, reports: PostgresReports) -> None:
    await lab.add(EVERY_HOUR)
    run_id = await lab.schedules.trigger("hourly", payload=None, request_id=None)
    term = await lab.term()
    (run,) = (await lab.runs.claim(term, limit=1)).runs
    records = PostgresRunRecords(lab.database, lab.who)
    service = RunsService(Runs(records, lab.hints), reports)
    ref = runs_pb2.RunRef(run_id=run_id, attempt=run.ref.attempt, epoch=term.epoch)
    for step, value in (("charge", b"123"), ("mail", b"")):
        await service.Checkpoint(
            runs_pb2.RunsCheckpointRequest(run=ref, step=step, value=value), None
        )
    answer = await service.Get(runs_pb2.RunsGetRequest(run_id=run_id), None)
    assert [(one.step, one.attempt, one.size) for one in answer.run.steps] == [
        ("charge", 1, 3), ("mail", 1, 0),
    ]  # fmt: skip
    first, second = (one.stored_at.ToDatetime(tzinfo=UTC) for one in answer.run.steps)
    assert datetime.now(UTC) - timedelta(minutes=10) < first <= second
    await lab.sql("UPDATE baton.checkpoint SET stored_at = NULL, attempt = NULL")
    answer = await service.Get(runs_pb2.RunsGetRequest(run_id=run_id), None)
    assert not answer.run.steps[0].HasField("stored_at")  # stored by an older release


_INSERT = (
    "INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, outcome, reason, due_at,"
    " started_at, finished_at)"
    " SELECT %(cluster)s, %(group)s, %(kind)s, %(name)s, now() - n * interval '1 s', 'ended',"
    " %(outcome)s, %(reason)s, now(), now() - n * interval '1 s' + interval '2 s',"
    " now() - n * interval '1 s' + interval '5 s' FROM generate_series(1, %(count)s) AS n"
)


async def _ran(lab: Lab, name: str, count: int, outcome: str, kind: str = "schedule") -> None:
    identity = await lab.who()
    reason = "misfire" if outcome == "skipped" else None
    await lab.sql(
        _INSERT, cluster=identity.cluster_id, group=identity.groups["default"], kind=kind,
        name=name, count=count, outcome=outcome, reason=reason,
    )  # fmt: skip


async def test_statistics_count_and_measure(lab: Lab, reports: PostgresReports) -> None:
    await _ran(lab, "mail", 20, "succeeded")
    await _ran(lab, "broken", 3, "failed", kind="trigger")
    answer = await stats(reports, runs_pb2.RunsStatsRequest())
    broken, mail = answer.names  # most failures first
    assert (broken.name, broken.failed, broken.succeeded) == ("broken", 3, 0)
    assert not broken.HasField("lateness")  # a trigger is never late
    assert (mail.name, mail.succeeded, mail.failed, mail.skipped) == ("mail", 20, 0, 0)
    assert mail.lateness.p50.ToMilliseconds() == 2000
    assert mail.durations.max.ToMilliseconds() == 3000
    assert len(answer.buckets) == 48
    assert sum(bucket.succeeded for bucket in answer.buckets) == 20
    assert answer.buckets[-1].failed == 3
    assert not answer.truncated
    one = await stats(reports, runs_pb2.RunsStatsRequest(name="mail"))
    assert [each.name for each in one.names] == ["mail"]


async def test_the_statistics_of_a_busy_window_are_bounded(
    lab: Lab, reports: PostgresReports
) -> None:
    await _ran(lab, "busy", 20_500, "skipped")
    answer = await stats(reports, runs_pb2.RunsStatsRequest())
    assert answer.truncated
    assert answer.names[0].skipped == 20_000


@pytest.mark.parametrize("seconds", [-1, 59, 32 * 86_400])
async def test_a_window_has_limits(reports: PostgresReports, seconds: int) -> None:
    request = runs_pb2.RunsStatsRequest()
    request.window.seconds = seconds
    with pytest.raises(InvalidArgument, match="window"):
        await stats(reports, request)


async def test_runs_are_filtered_by_kind_and_time(lab: Lab, reports: PostgresReports) -> None:
    await _ran(lab, "mail", 2, "succeeded")
    await _ran(lab, "mail", 1, "failed", kind="trigger")
    service = RunsService(Runs(PostgresRunRecords(lab.database, lab.who), lab.hints), reports)
    (now,) = await lab.sql("SELECT clock_timestamp() + interval '1 s' AS at")

    async def names(**wanted: object) -> int:
        request = runs_pb2.RunsListRequest(**wanted)  # type: ignore[arg-type]
        return len((await service.List(request, None)).runs)

    assert await names() == 3
    assert await names(kind=runs_pb2.RUN_KIND_TRIGGER) == 1
    assert await names(kind=runs_pb2.RUN_KIND_SCHEDULE, outcome=runs_pb2.OUTCOME_FAILED) == 0
    assert await names(since=now["at"] - timedelta(hours=1), until=now["at"]) == 3
    assert await names(since=now["at"]) == 0
    assert await names(until=now["at"] - timedelta(hours=1)) == 0
    page = await service.List(runs_pb2.RunsListRequest(page_size=1), None)
    other = runs_pb2.RunsListRequest(
        page_token=page.next_page_token, kind=runs_pb2.RUN_KIND_TRIGGER
    )
    with pytest.raises(InvalidArgument, match="page_token"):
        await service.List(other, None)


async def test_schedules_are_filtered_by_prefix_and_pause(lab: Lab) -> None:
    catalogue = Schedules(lab.schedules, lab.hints, cluster="test")
    service = SchedulesService(catalogue, dict)
    for name in ("mail-a", "mail-b", "mail%", "other"):
        schedule = schedules_pb2.Schedule(name=name.replace("%", "_"), cron="0 2 * * *")
        await service.Create(schedules_pb2.SchedulesCreateRequest(schedule=schedule), None)
    await catalogue.pause("mail-b", "")

    async def names(**wanted: object) -> list[str]:
        request = schedules_pb2.SchedulesListRequest(**wanted)  # type: ignore[arg-type]
        return [one.name for one in (await service.List(request, None)).schedules]

    assert await names(name_prefix="mail-") == ["mail-a", "mail-b"]
    assert await names(name_prefix="mail_") == ["mail_"]  # no wildcard
    assert await names(paused=True) == ["mail-b"]
    assert await names(name_prefix="mail-", paused=False) == ["mail-a"]


async def test_deferreds_are_listed_without_their_secrets(
    lab: Lab, reports: PostgresReports
) -> None:
    """G12: neither a token nor a value is in a list."""
    deferreds = Deferreds(PostgresDeferreds(lab.database, lab.who), lab.hints)
    service = DeferredsService(deferreds, reports)
    await lab.add(EVERY_HOUR)
    await lab.schedules.trigger("hourly", payload=None, request_id=None)
    term = await lab.term()
    (run,) = (await lab.runs.claim(term, limit=1)).runs
    ref = run.ref
    tokens = [
        await deferreds.create(name, run=owner, ttl_seconds=None)
        for name, owner in (("approval", ref), ("signature", ref), ("free", None))
    ]
    await deferreds.complete(tokens[0], b"hunter2")
    request = deferreds_pb2.DeferredsListRequest(page_size=2)
    page = await service.List(request, None)
    request.page_token = page.next_page_token
    rest = await service.List(request, None)
    found = [*page.deferreds, *rest.deferreds]
    assert [one.name for one in found] == ["signature", "approval", "free"]
    assert not any(one.token or one.value for one in found)
    pending = deferreds_pb2.DeferredsListRequest(
        run_id=run.ref.run_id, state=deferreds_pb2.DEFERRED_STATE_PENDING
    )
    assert [one.name for one in (await service.List(pending, None)).deferreds] == ["signature"]


async def test_a_pod_that_nobody_looks_at_holds_no_connection(database_url: str) -> None:
    database = Database(
        lambda: database_url, schema="baton", size=2, statement_seconds=2.0, unused_seconds=0.2
    )
    try:
        for _ in range(2):
            await database.fetch("health/select_one")
            assert database.open_connections == 1
            async with asyncio.timeout(30):
                while database.open_connections:  # noqa: ASYNC110 - the pool has no event
                    await asyncio.sleep(0.05)
    finally:
        await database.close()
