"""More is due than can be run: what Postgres tells of it, and how thousands are taken back."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from sidecar._proto.baton.v1 import schedules_pb2
from sidecar.adapters.convert import duration
from sidecar.adapters.grpc_server.schedules import SchedulesService
from sidecar.adapters.grpc_server.warnings import warnings_of
from sidecar.adapters.postgres.database import Transaction
from sidecar.model.backlog import Backlog
from sidecar.model.definitions import Schedule
from sidecar.scheduling import ConfigSync, Schedules
from tests.integration.runs_lab import EVERY_HOUR, Lab, laboratory

REMOVED = 1_200


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


async def _queue(lab: Lab, name: str, *, seconds_ago: float, state: str = "queued") -> None:
    await lab.sql(
        """INSERT INTO baton.run
               (cluster_id, group_id, kind, name, schedule_id, tick, state, overlap, due_at)
           SELECT cluster_id, group_id, 'trigger', name, id, clock_timestamp(), %(state)s,
               coalesce(definition ->> 'overlap', 'allow'),
               clock_timestamp() - make_interval(secs => %(ago)s)
           FROM baton.schedule WHERE name = %(name)s""",
        name=name,
        state=state,
        ago=seconds_ago,
    )


async def test_the_backlog_is_what_is_due_and_could_start(lab: Lab) -> None:
    """Runs and ticks count; what is due later, or waits for its own schedule, does not."""
    term = await lab.term()
    await lab.add(EVERY_HOUR)
    assert await lab.runs.backlog(term, limit=100) == Backlog()
    await lab.add(Schedule(name="serial", every_seconds=3600.0, overlap="queue"))
    await _queue(lab, "hourly", seconds_ago=-60)
    await _queue(lab, "serial", seconds_ago=500, state="running")
    await _queue(lab, "serial", seconds_ago=400)
    assert await lab.runs.backlog(term, limit=100) == Backlog()
    for _ in range(5):
        await _queue(lab, "hourly", seconds_ago=30)
    found = await lab.runs.backlog(term, limit=100)
    assert (found.runs, found.schedules) == (5, 0)
    assert 30 <= found.seconds < 60
    late = Schedule(name="late", every_seconds=1.0)
    await lab.add(late, behind=timedelta(seconds=100))
    found = await lab.runs.backlog(term, limit=100)
    assert (found.runs, found.schedules) == (5, 1)
    assert 98 <= found.seconds < 160
    assert (await lab.runs.backlog(term, limit=3)).runs == 3


async def test_thousands_leave_the_file_in_a_few_statements(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G4: each due tick and each queued run gets its row. Ticks of the schedules that stay wait
    meanwhile, so it must not take a statement for each."""
    config = ConfigSync(lab.schedules, lab.hints, cluster="test")
    stays = Schedule(name="stays", every_seconds=3600.0)
    many = [Schedule(name=f"s{n:04}", every_seconds=1.0) for n in range(REMOVED)]
    assert await config.sync([stays, *many], 1)
    await lab.sql(
        "UPDATE baton.schedule SET watermark = watermark - interval '1 min' WHERE name <> 'stays'"
    )
    for name in ("s0000", "s1199", "stays"):
        await _queue(lab, name, seconds_ago=1)
    statements: Counter[str] = Counter()
    fetch = Transaction.fetch

    async def counted(
        self: Transaction, query: str, parameters: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        statements[query] += 1
        return await fetch(self, query, parameters)

    monkeypatch.setattr(Transaction, "fetch", counted)
    assert await config.sync([stays], 2)
    monkeypatch.undo()
    writes = {"schedules/retire", "schedules/skip_range", "schedules/change"}
    assert sum(statements[each] for each in writes) < 10, statements
    rows = await lab.sql(
        """SELECT count(*) FILTER (WHERE retired_at IS NOT NULL) AS retired,
               count(*) FILTER (WHERE retired_at IS NULL) AS live FROM baton.schedule"""
    )
    assert rows == [{"retired": REMOVED, "live": 1}]
    rows = await lab.sql(
        """SELECT name, kind, state, outcome, reason, tick_count > 50 AS many FROM baton.run
           WHERE name IN ('s0000', 's0500', 'stays') ORDER BY name, kind"""
    )
    skipped = {"state": "ended", "outcome": "skipped", "reason": "operator"}
    waits = {"state": "queued", "outcome": None, "reason": None, "many": False}
    assert rows == [
        {"name": "s0000", "kind": "schedule", **skipped, "many": True},
        {"name": "s0000", "kind": "trigger", **skipped, "many": False},
        {"name": "s0500", "kind": "schedule", **skipped, "many": True},
        {"name": "stays", "kind": "trigger", **waits},
    ]


async def test_create_warns_of_more_than_a_leader_sustains(lab: Lab) -> None:
    """The answer has it as trailing metadata; the sum is read once for many creations."""
    service = SchedulesService(Schedules(lab.schedules, lab.hints, cluster="test"), dict)
    many = [Schedule(name=f"s{n}", every_seconds=1 / 140) for n in range(2)]
    await ConfigSync(lab.schedules, lab.hints, cluster="test").sync(many, 1)
    await lab.add(Schedule(name="cron", cron="* * * * * *"))
    assert await lab.schedules.declared_load("default") == pytest.approx(281)

    class Call:
        trailers: Sequence[tuple[str, str]] = ()

        def set_trailing_metadata(self, trailers: Sequence[tuple[str, str]]) -> None:
            self.trailers = trailers

    async def create(number: int) -> list[str]:
        call = Call()
        message = schedules_pb2.Schedule(name=f"new{number}", every=duration(0.1))
        await service.Create(schedules_pb2.SchedulesCreateRequest(schedule=message), call)
        return warnings_of(call.trailers)

    assert await create(1) == []
    (warning,) = await create(2)
    assert "group default: its schedules declare 301 ticks per second" in warning
