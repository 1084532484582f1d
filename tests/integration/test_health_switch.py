"""The dead man's switch on a real Postgres, with seconds instead of minutes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from prometheus_client import generate_latest
from psycopg.types.json import Jsonb

from sidecar import metrics
from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.definitions import to_json
from sidecar.adapters.postgres.heartbeats import SCHEDULES_MAX, Heartbeats
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.execution.authority import Authority
from sidecar.health import DeadMansSwitch
from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.health import VitalsReading, staleness
from sidecar.model.identity import Identity
from sidecar.model.run import Outcome, Run, RunKind, RunRef, RunState
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.term import LossReason, Term
from sidecar.model.verdict import Verdict
from tests.lab.proxy import FaultProxy

HEARTBEAT_SECONDS = 0.4
STALE_SECONDS = 1.0
# Where success is what counts, of which a twelfth is allowed: a machine that stands still for a
# second or two must not make a heartbeat stale.
PATIENT_SECONDS = 12.0
EPOCH = 1000


@dataclass
class Cluster:
    """A database with one group, led under EPOCH, and the switch of its leader."""

    url: str
    database: Database
    identity: Identity
    store: Heartbeats
    app_answers: bool = True
    others_ready: bool = True
    stepped_down: list[str] = field(default_factory=list)
    fenced: int = 0

    def __post_init__(self) -> None:
        self.switch = self.new_switch()

    def new_switch(
        self, heartbeat_seconds: float = HEARTBEAT_SECONDS, stale_seconds: float = STALE_SECONDS
    ) -> DeadMansSwitch:
        return DeadMansSwitch(
            self.store,
            heartbeat_seconds=heartbeat_seconds,
            stale_after_seconds=stale_seconds,
            app_answers=lambda: self.app_answers,
            peers=self,
            clock=boottime,
            answering_seconds=self.database.answering_seconds,
        )

    @property
    def group_id(self) -> int:
        return self.identity.groups["default"]

    async def execute(self, text: str, **parameters: object) -> None:
        connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
        async with connection:
            ids = {"cluster_id": self.identity.cluster_id, "group_id": self.group_id}
            await connection.execute(text.encode(), ids | parameters)

    async def add_schedule(self, name: str, every_seconds: float, **definition: Any) -> None:
        await self.execute(
            "INSERT INTO baton.schedule (cluster_id, group_id, name, source, definition, watermark,"
            " next_tick) VALUES (%(cluster_id)s, %(group_id)s, %(name)s, 'api', %(definition)s,"
            " now(), now() + interval '1 minute')",
            name=name,
            definition=Jsonb(
                to_json(Schedule(name=name, every_seconds=every_seconds, **definition))
            ),
        )

    async def succeed(self, name: str) -> None:
        await self.execute(
            "INSERT INTO baton.execution (cluster_id, entity_type, name, last_run_at,"
            " last_success_at) VALUES (%(cluster_id)s, 'schedule', %(name)s, now(), now())"
            " ON CONFLICT (cluster_id, entity_type, name) DO UPDATE SET last_run_at = now(),"
            " last_success_at = now()",
            name=name,
        )

    @asynccontextmanager
    async def leading(self, switch: DeadMansSwitch | None = None) -> AsyncIterator[Authority]:
        def revoke(reason: LossReason) -> None:
            if reason is LossReason.FENCED:
                self.fenced += 1
            else:
                self.stepped_down.append("default")

        term = Term("default", self.group_id, EPOCH)
        authority = Authority(term, lambda: 3.0, revoke)
        task = asyncio.create_task((switch or self.switch).watch(authority))
        try:
            yield authority
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()


@pytest.fixture
async def cluster(database_url: str) -> AsyncIterator[Cluster]:
    await migrate(database_url, "baton")
    database = Database(lambda: database_url, schema="baton", size=2, statement_seconds=3.0)
    membership = Membership(database, runner_id="r1", host="h", version="0")
    identity = await membership.join("orders", "", ["default"])
    store = Heartbeats(database, lambda: identity, [Singleton(name="coordinator")])
    cluster = Cluster(database_url, database, identity, store)
    await cluster.execute(
        "UPDATE baton.term SET epoch = %(epoch)s WHERE group_id = %(group_id)s", epoch=EPOCH
    )
    yield cluster
    await database.close()


async def _until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.02)


def _by_name(switch: DeadMansSwitch) -> dict[str, Any]:
    return {vitals.name: vitals for vitals, _, _ in switch.entities()}


async def test_heartbeats_are_written_while_lock_and_app_hold(cluster: Cluster) -> None:
    """G10"""
    await cluster.add_schedule("cleanup", 3600)
    cluster.switch = cluster.new_switch(stale_seconds=3.0)
    async with cluster.leading():
        await _until(lambda: _by_name(cluster.switch).get("cleanup"))
        await _until(lambda: _by_name(cluster.switch)["cleanup"].heartbeat_at)
        first = _by_name(cluster.switch)["cleanup"].heartbeat_at
        await _until(lambda: _by_name(cluster.switch)["cleanup"].heartbeat_at > first)
        assert cluster.switch.stale() == []
        cluster.app_answers = False
        await _until(lambda: len(cluster.switch.stale()) == 2, 10)
        assert "schedule cleanup: no heartbeat" in "\n".join(cluster.switch.stale())
        cluster.app_answers = True
        await _until(lambda: not cluster.switch.stale())
    assert cluster.switch.stale() == []  # no longer led here: no longer our concern


async def test_no_success_in_twice_the_interval_turns_red_and_success_green(
    cluster: Cluster,
) -> None:
    """G10: with the reason; green again after recovery; one step-down, not one per second."""
    await cluster.add_schedule("wedged", 0.5)
    await cluster.add_schedule("paused", 0.5)
    await cluster.add_schedule("later", 0.5, start_at=datetime(2090, 1, 1, tzinfo=UTC))
    await cluster.add_schedule("disabled", 0.5, enabled=False)
    await cluster.execute("UPDATE baton.schedule SET paused = true WHERE name = 'paused'")
    cluster.switch = cluster.new_switch(stale_seconds=PATIENT_SECONDS)
    async with cluster.leading():
        await _until(lambda: cluster.stepped_down)
        reasons = cluster.switch.stale()
        assert [line.partition(" for")[0] for line in reasons] == ["schedule wedged: no success"]
        text = generate_latest(metrics.REGISTRY).decode()
        assert 'baton_stale{singleton="wedged",type="cron"} 1.0' in text
        assert 'baton_schedule_next_run_timestamp{schedule="wedged"}' in text
        assert 'baton_schedule_next_run_timestamp{schedule="paused"}' not in text
        async with asyncio.timeout(60):  # each success is fresh for a second only
            while cluster.switch.stale():
                await cluster.succeed("wedged")
                await asyncio.sleep(0.2)
        await asyncio.sleep(1.5)
        assert cluster.stepped_down == ["default"]
    assert 'singleton="wedged"' not in generate_latest(metrics.REGISTRY).decode()


async def test_what_was_stale_and_is_deleted_leaves_no_series(cluster: Cluster) -> None:
    """Its name makes room under the cap for another one's."""
    await cluster.add_schedule("doomed", 0.5)
    cluster.switch = cluster.new_switch(stale_seconds=PATIENT_SECONDS)
    async with cluster.leading():
        await _until(cluster.switch.stale)
        await cluster.execute("DELETE FROM baton.schedule WHERE name = 'doomed'")
        await _until(lambda: not cluster.switch.stale())
        assert 'singleton="doomed"' not in generate_latest(metrics.REGISTRY).decode()


async def test_a_schedule_faster_than_our_reading_is_not_red_without_cause(
    cluster: Cluster,
) -> None:
    """G10: with the real pace of reading, a success that was not read yet is no alarm."""
    await cluster.add_schedule("quick", 0.6)
    await cluster.succeed("quick")
    switch, red = cluster.new_switch(30.0, 60.0), []
    async with cluster.leading(switch):
        for _ in range(60):
            await cluster.succeed("quick")
            await asyncio.sleep(0.1)
            red += switch.stale()
        assert red == []
        assert cluster.stepped_down == []
        await _until(switch.stale, seconds=8)  # and red in time when there is a cause


async def test_crons_are_judged_by_what_they_promise(cluster: Cluster) -> None:
    """G10: derived only for those that may be late, and no alarm for the others."""
    for name, cron in (("late", "* * * * *"), ("weekly", "0 0 * * 0"), ("broken", "* * * * *")):
        definition = to_json(Schedule(name=name, cron=cron))
        await cluster.execute(
            "INSERT INTO baton.schedule (cluster_id, group_id, name, source, definition, watermark,"
            " next_tick, counted_from) VALUES (%(cluster_id)s, %(group_id)s, %(name)s, 'api',"
            " %(definition)s, date_trunc('minute', now()), date_trunc('minute', now())"
            " + interval '1 minute', now() - interval '1 hour')",
            name=name,
            definition=Jsonb(definition | ({"timezone": "No/Where"} if name == "broken" else {})),
        )
    assert await cluster.store.beat(Term("default", cluster.group_id, EPOCH), 0.0)
    reading = await cluster.store.read(["default"])
    found = {each.name: each for each in reading.entities}
    stale = {name for name, each in found.items() if staleness(each, reading.now, 60)}
    assert stale == {"late"}
    assert found["late"].expected_seconds == 60
    assert found["weekly"].expected_seconds == 7 * 86_400
    await cluster.succeed("late")
    reading = await cluster.store.read(["default"])
    assert not [each for each in reading.entities if staleness(each, reading.now, 60)]


async def test_many_late_crons_do_not_flap_when_they_tick(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G10: what they promise is derived for a few at a time; the others stay as stale as they were,
    and none is left out for others that promise nothing."""
    monkeypatch.setattr("sidecar.adapters.postgres.heartbeats._SUSPECTS_MAX", 1)
    for name, zone in (("a", "No/Where"), ("b", "UTC"), ("c", "UTC")):
        definition = to_json(Schedule(name=name, cron="* * * * *")) | {"timezone": zone}
        await cluster.execute(
            "INSERT INTO baton.schedule (cluster_id, group_id, name, source, definition, watermark,"
            " next_tick, counted_from) VALUES (%(cluster_id)s, %(group_id)s, %(name)s, 'api',"
            " %(definition)s, date_trunc('minute', now()), date_trunc('minute', now())"
            " + interval '1 minute', now() - interval '1 hour')",
            name=name,
            definition=Jsonb(definition),
        )

    async def paces() -> dict[str, float]:
        reading = await cluster.store.read(["default"])
        schedules = (each for each in reading.entities if each.kind == "schedule")
        return {each.name: each.expected_seconds for each in schedules}

    for _ in range(3):
        found = await paces()
    assert found == {"a": 0, "b": 60, "c": 60}
    await cluster.execute(
        "UPDATE baton.schedule SET watermark = next_tick, next_tick = next_tick + '1 minute'"
    )
    assert await paces() == found
    await cluster.execute("UPDATE baton.schedule SET version = version + 1 WHERE name = 'b'")
    assert (await paces())["c"] == 60


async def test_a_new_leader_is_red_at_once_but_stays(cluster: Cluster) -> None:
    """G10: no grace after a change of leader, and no round of step-downs either."""
    await cluster.add_schedule("wedged", 0.5)
    await cluster.execute("UPDATE baton.schedule SET counted_from = now() - interval '1 hour'")
    cluster.switch = cluster.new_switch(stale_seconds=PATIENT_SECONDS)
    async with cluster.leading():
        await _until(lambda: _by_name(cluster.switch))
        assert len(cluster.switch.stale()) == 1
        await asyncio.sleep(2.5)
        assert len(cluster.switch.stale()) == 1
        assert cluster.stepped_down == []


async def test_nobody_steps_down_when_nobody_else_is_there(cluster: Cluster) -> None:
    """G10"""
    cluster.others_ready = False
    await cluster.add_schedule("wedged", 0.3)
    async with cluster.leading():
        await _until(cluster.switch.stale)
        await asyncio.sleep(1.0)
        assert cluster.stepped_down == []


async def test_a_singletons_own_heartbeat_counts_as_success(cluster: Cluster) -> None:
    """G10"""
    await cluster.execute(
        "INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, due_at, epoch)"
        " VALUES (%(cluster_id)s, %(group_id)s, 'singleton', 'coordinator', now(), 'running',"
        " now(), %(epoch)s)",
        epoch=EPOCH,
    )
    wanted = [Singleton(name="coordinator", expected_interval_seconds=1.0)]
    cluster.store = Heartbeats(cluster.database, lambda: cluster.identity, wanted)
    cluster.switch = cluster.new_switch(stale_seconds=PATIENT_SECONDS)
    async with cluster.leading():
        await _until(cluster.switch.stale)
        assert "singleton coordinator: no success" in cluster.switch.stale()[0]
        async with asyncio.timeout(60):  # each is fresh for two seconds only
            while cluster.switch.stale():
                await cluster.execute("UPDATE baton.run SET heartbeat_at = clock_timestamp()")
                await asyncio.sleep(0.2)


async def test_a_singleton_of_which_more_is_expected_is_not_late_at_once(cluster: Cluster) -> None:
    """G10: counted from the change, for the next leader too, and not from its creation."""
    await cluster.execute(
        "INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, due_at, epoch,"
        " created_at) VALUES (%(cluster_id)s, %(group_id)s, 'singleton', 'coordinator', now(),"
        " 'running', now(), %(epoch)s, now() - interval '3 days')",
        epoch=EPOCH,
    )
    term = Term("default", cluster.group_id, EPOCH)
    assert await cluster.store.beat(term, 0.0)

    async def look(expected_seconds: float) -> tuple[float, bool]:
        """By a process that has seen nothing yet: what it expects, and whether that is stale."""
        wanted = [Singleton(name="coordinator", expected_interval_seconds=expected_seconds)]
        cluster.store = Heartbeats(cluster.database, lambda: cluster.identity, wanted)
        reading = await cluster.store.read(["default"])
        stale = staleness(reading.entities[0], reading.now, 60)
        return reading.entities[0].expected_seconds, stale is not None

    assert await look(60.0) == (0.0, False)
    assert await cluster.store.beat(term, 0.0)
    assert await look(60.0) == (60.0, False)
    await cluster.execute(
        "UPDATE baton.execution SET expected_since = expected_since - interval '3 minutes'"
    )
    assert await cluster.store.beat(term, 0.0)
    assert await look(60.0) == (60.0, True)  # no grace for the next leader, nor after a heartbeat


async def test_the_last_execution_shows_the_last_sign_of_life(cluster: Cluster) -> None:
    """A singleton's heartbeats, and the end of a run that succeeded: before a change of leader and
    after it. An end that was seen here is not moved back to the beginning."""
    await cluster.add_schedule("long", 3600)
    await cluster.succeed("long")
    await cluster.execute("UPDATE baton.execution SET last_run_at = now() - interval '1 hour'")
    await cluster.execute(
        "INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, due_at, epoch,"
        " attempt_started_at, heartbeat_at) VALUES (%(cluster_id)s, %(group_id)s, 'singleton',"
        " 'coordinator', now(), 'running', now(), %(epoch)s, now() - interval '1 hour', now())",
        epoch=EPOCH,
    )
    now = datetime.now(UTC).timestamp()
    async with cluster.leading():
        await _until(lambda: _by_name(cluster.switch).get("long"))
        entities = metrics.ENTITIES
        for shown in (entities("long", "cron"), entities("coordinator", "singleton")):
            assert shown.last_execution == pytest.approx(now, abs=60)
            shown.last_execution = now + 60  # as a run that ended sets it
        all_heartbeats_at = _by_name(cluster.switch)["long"].heartbeat_at
        await _until(lambda: _by_name(cluster.switch)["long"].heartbeat_at != all_heartbeats_at)
        assert entities("long", "cron").last_execution == now + 60


async def test_a_heartbeat_of_an_old_term_is_refused(cluster: Cluster) -> None:
    """G3"""
    await cluster.execute("UPDATE baton.term SET epoch = epoch + 1")
    async with cluster.leading():
        await _until(lambda: cluster.fenced)
        assert _by_name(cluster.switch)["coordinator"].heartbeat_at is None


async def test_a_silent_postgres_turns_red_and_is_counted(cluster: Cluster) -> None:
    """G10: heartbeats that fail are typed and counted, and silence never looks healthy."""
    before = _failures()
    async with cluster.leading():
        await _until(lambda: "coordinator" in _by_name(cluster.switch))
        await _until(lambda: _by_name(cluster.switch)["coordinator"].heartbeat_at)
        locked = await psycopg.AsyncConnection.connect(cluster.url)
        async with locked:
            await locked.execute("LOCK TABLE baton.execution IN EXCLUSIVE MODE")
            await _until(cluster.switch.stale)
            await _until(lambda: _failures() > before)
        await _until(lambda: not cluster.switch.stale())


async def test_a_store_that_breaks_in_an_unknown_way_turns_red_and_ends_nothing(
    cluster: Cluster,
) -> None:
    """G11: a table that is gone, a right that was taken away."""
    async with cluster.leading():
        await _until(lambda: "coordinator" in _by_name(cluster.switch))
        await _until(lambda: _by_name(cluster.switch)["coordinator"].heartbeat_at)
        await cluster.execute("ALTER TABLE baton.execution RENAME TO gone")
        await _until(cluster.switch.stale)
        await cluster.execute("ALTER TABLE baton.gone RENAME TO execution")
        await _until(lambda: not cluster.switch.stale())


def _failures() -> float:
    return metrics.REGISTRY.get_sample_value("baton_heartbeat_failures_total") or 0.0


async def test_a_completion_in_progress_does_not_hold_up_heartbeats(cluster: Cluster) -> None:
    """A locked row is skipped and written later; the others are written now."""
    await cluster.add_schedule("busy", 3600)
    await cluster.add_schedule("idle", 3600)
    term = Term("default", cluster.group_id, EPOCH)
    assert await cluster.store.beat(term, 0.0)
    before = {each.name: each for each in (await cluster.store.read(["default"])).entities}
    locker = await psycopg.AsyncConnection.connect(cluster.url)
    async with locker:
        await locker.execute("SELECT FROM baton.execution WHERE name = 'busy' FOR UPDATE")
        async with asyncio.timeout(2):
            assert await cluster.store.beat(term, 0.0)
    after = {each.name: each for each in (await cluster.store.read(["default"])).entities}
    assert after["busy"].heartbeat_at == before["busy"].heartbeat_at
    assert after["idle"].heartbeat_at > before["idle"].heartbeat_at  # type: ignore[operator]


async def test_what_is_led_elsewhere_is_shown_but_not_judged_here(cluster: Cluster) -> None:
    await cluster.add_schedule("theirs", 0.1)
    await cluster.execute("UPDATE baton.schedule SET counted_from = now() - interval '1 hour'")
    task = asyncio.create_task(cluster.switch.observe(["default"]))
    await _until(lambda: "theirs" in _by_name(cluster.switch))
    task.cancel()
    await asyncio.wait({task})
    shown = [(each[0].name, bool(each[1]), each[2]) for each in cluster.switch.entities()]
    assert ("theirs", True, False) in shown
    assert cluster.switch.stale() == []


async def test_a_person_is_told_why_something_is_stale_led_here_or_not(cluster: Cluster) -> None:
    """G10: as /readyz tells it, and made from what is stale alone, however many are fresh."""
    await cluster.add_schedule("wedged", 0.3)
    await cluster.add_schedule("hourly", 3600.0)
    cluster.switch = cluster.new_switch(stale_seconds=PATIENT_SECONDS)
    async with cluster.leading():
        await _until(cluster.switch.stale)
        reasons = cluster.switch.stale_reasons()
        assert [*reasons] == [("schedule", "wedged")]
        assert reasons["schedule", "wedged"].startswith("no success for ")
        assert reasons["schedule", "wedged"] in cluster.switch.stale()[0]
    await cluster.execute("UPDATE baton.schedule SET counted_from = now() - interval '1 hour'")
    observing = asyncio.create_task(cluster.switch.observe(["default"]))
    await _until(lambda: "wedged" in _by_name(cluster.switch))
    observing.cancel()
    await asyncio.wait({observing})
    assert "no success for 36" in cluster.switch.stale_reasons()["schedule", "wedged"]


async def test_what_is_stale_stays_red_until_it_is_handed_over(cluster: Cluster) -> None:
    """G10: the watch ends when the hand-over begins, its verdict when the term does."""
    await cluster.add_schedule("wedged", 0.3)
    cluster.switch = cluster.new_switch(stale_seconds=PATIENT_SECONDS)
    async with cluster.leading() as authority:
        await _until(cluster.switch.stale)
        authority.draining.set()
        await asyncio.sleep(0.2)
        assert "schedule wedged: no success" in cluster.switch.stale()[0]
        authority.trusted_seconds = lambda: 0.0
        assert cluster.switch.stale() == []
        assert _by_name(cluster.switch) == {}
    assert 'singleton="wedged"' not in generate_latest(metrics.REGISTRY).decode()


class CountedReads(Heartbeats):
    reads = 0

    async def read(self, groups: Sequence[str], limit: int = SCHEDULES_MAX) -> VitalsReading:
        self.reads += 1
        return await super().read(groups, limit)


class SteppedClock(CountedReads):
    """A database whose clock was set forward by an hour at `stepped_at`, of its clock before."""

    stepped_at = datetime.max.replace(tzinfo=UTC)

    async def read(self, groups: Sequence[str], limit: int = SCHEDULES_MAX) -> VitalsReading:
        reading = await super().read(groups, limit)
        entities = (
            replace(each, heartbeat_at=each.heartbeat_at and self._shown(each.heartbeat_at))
            for each in reading.entities
        )
        return replace(reading, now=self._shown(reading.now), entities=tuple(entities))

    async def beat(self, term: Term, older_than_seconds: float) -> bool:
        stepped = datetime.now(UTC) > self.stepped_at  # then everything looks an hour old
        return await super().beat(term, 0.0 if stepped else older_than_seconds)

    def _shown(self, at: datetime) -> datetime:
        return at + timedelta(hours=1) if at > self.stepped_at else at


class SteppingClock(Heartbeats):
    """A database whose clock is set forward."""

    step = timedelta()

    async def read(self, groups: Sequence[str], limit: int = SCHEDULES_MAX) -> VitalsReading:
        reading = await super().read(groups, limit)
        return replace(reading, now=reading.now + self.step)


async def test_a_step_of_the_databases_clock_makes_nobody_step_down(cluster: Cluster) -> None:
    """G10: it shows as what it is, but no hour has passed in which the leader could do better."""
    store = cluster.store = SteppingClock(cluster.database, lambda: cluster.identity, [])
    await cluster.add_schedule("hourly", 3600.0)
    switch = cluster.new_switch(heartbeat_seconds=2.0, stale_seconds=60.0)
    async with cluster.leading(switch):
        await _until(lambda: [*switch.entities()])
        await asyncio.sleep(1.5)  # it is seen fresh
        store.step = timedelta(hours=3)
        await _until(switch.stale)
        await asyncio.sleep(2.5)  # it is judged each second
        assert switch.stale()
    assert not cluster.stepped_down


async def test_a_step_of_the_databases_clock_makes_no_heartbeat_old(cluster: Cluster) -> None:
    """G10: never red without cause; and red in time if none is written any more."""
    store = cluster.store = SteppedClock(cluster.database, lambda: cluster.identity, [])
    await cluster.add_schedule("daily", 86_400.0)
    switch = cluster.new_switch(heartbeat_seconds=4.0, stale_seconds=10.0)
    async with cluster.leading(switch):
        await _until(lambda: [*switch.entities()] and _by_name(switch)["daily"].heartbeat_at)
        store.stepped_at, before = datetime.now(UTC), store.reads
        reds: list[str] = []

        def looked() -> bool:
            reds.extend(switch.stale())
            return store.reads > before + 4

        await _until(looked, 15)
        assert not reds
        cluster.app_answers = False
        await _until(switch.stale, 15)
        assert "schedule daily: no heartbeat for 1" in switch.stale()[0]


async def test_thousands_are_read_seldom_yet_turn_red_and_show_what_is_new(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G10: our own heartbeats need not be read back; silence turns red by time alone."""
    monkeypatch.setattr("sidecar.health.led_group.SMALL_GROUP_MAX", 0)
    store = cluster.store = CountedReads(cluster.database, lambda: cluster.identity, [])
    await cluster.add_schedule("hourly", 3600.0)
    # A beat each 2.5 s, stale after 10 s: a slow machine must not turn it red.
    switch = cluster.new_switch(heartbeat_seconds=3.0, stale_seconds=10.0)
    async with cluster.leading(switch):
        await _until(lambda: "hourly" in _by_name(switch))
        await _until(lambda: _by_name(switch)["hourly"].heartbeat_at)
        first = _by_name(switch)["hourly"].heartbeat_at
        await _until(lambda: _by_name(switch)["hourly"].heartbeat_at > first, 10)
        second = _by_name(switch)["hourly"].heartbeat_at
        await _until(lambda: _by_name(switch)["hourly"].heartbeat_at > second, 10)
        assert not switch.stale()
        assert store.reads == 2
        await cluster.add_schedule("new", 3600.0)
        switch.changed("default")
        await _until(lambda: "new" in _by_name(switch), 10)
        cluster.app_answers = False
        await _until(lambda: any("no heartbeat" in line for line in switch.stale()), 20)


async def test_a_success_that_was_seen_need_not_be_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G10: among thousands the one that runs each second does not make all be read each time."""
    monkeypatch.setattr("sidecar.health.led_group.SMALL_GROUP_MAX", 0)
    store = cluster.store = CountedReads(cluster.database, lambda: cluster.identity, [])
    await cluster.add_schedule("busy", 1.0)
    switch = cluster.new_switch(heartbeat_seconds=12.0, stale_seconds=36.0)  # 3 s for a success
    async with cluster.leading(switch):
        await _until(lambda: store.reads == 2)  # before and after the first heartbeat
        for _ in range(20):
            await cluster.succeed("busy")
            switch.recorded(*_succeeded("busy"))
            await asyncio.sleep(0.4)
        assert not switch.stale()
        assert store.reads == 2
        await _until(lambda: any("no success" in line for line in switch.stale()), 10)
        async with asyncio.timeout(60):  # what others did is still read
            while switch.stale():
                await cluster.succeed("busy")
                await asyncio.sleep(0.2)


def _succeeded(name: str) -> tuple[Completion, Recorded]:
    now = datetime.now(UTC)
    run = Run(RunRef(1, 1, EPOCH), RunKind.SCHEDULE, name, "default", now, "key")
    verdict = Verdict(Outcome.SUCCEEDED)
    recorded = Recorded(
        1, RunKind.SCHEDULE, RunState.ENDED, Outcome.SUCCEEDED, None, finished_at=now
    )
    return Completion(run, verdict), recorded


async def test_what_an_outage_made_stale_is_no_reason_to_step_down(cluster: Cluster) -> None:
    """G10: red when Postgres is back and shows no success in 3 s, but the leader gets 3 s more."""
    with FaultProxy.before(cluster.url) as wire:
        url = wire.url(cluster.url)
        database = Database(lambda: url, schema="baton", size=2, statement_seconds=3.0)
        cluster.database, cluster.store = (
            database,
            Heartbeats(database, lambda: cluster.identity, []),
        )
        cluster.switch = cluster.new_switch(stale_seconds=36.0)
        await cluster.add_schedule("quick", 0.5)
        await cluster.succeed("quick")
        async with cluster.leading():
            await _until(lambda: _by_name(cluster.switch).get("quick"))
            await _until(lambda: _by_name(cluster.switch)["quick"].heartbeat_at)
            assert cluster.switch.stale() == []
            wire.refuse()
            wire.cut()
            await asyncio.sleep(4.5)
            assert cluster.stepped_down == []
            wire.heal()
            await _until(cluster.switch.stale)
            await asyncio.sleep(1.2)  # it is judged every second
            assert cluster.stepped_down == []
            await cluster.succeed("quick")
            await _until(lambda: not cluster.switch.stale())
            await _until(lambda: cluster.stepped_down, 20)  # this time it had its chance
        await database.close()
