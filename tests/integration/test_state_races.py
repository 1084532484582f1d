"""Several pods at once: no lost update, linearizable reads, lost answers, no change missed."""

import asyncio
import itertools
import random
from dataclasses import dataclass, replace

import psycopg
import pytest

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.state import PostgresState
from sidecar.model.errors import Conflict, NotFound, StatePersistFailed
from sidecar.model.state_types import DatabaseSnapshot, Delete, Put, Record
from sidecar.state import NoCopies, StateStore, StateSweeper, StateWatch
from tests.integration.test_state_grpc import LocalHints
from tests.lab.proxy import FaultProxy
from tests.state_lab import NoHints, StateLab, nobody_known, state_lab


@pytest.fixture
async def lab(database_url: str) -> StateLab:
    return await state_lab(database_url)


def store(truth: PostgresState) -> StateStore:
    return StateStore(truth, NoCopies(), NoHints(), nobody_known, monotonic=boottime)


async def test_no_update_is_lost(lab: StateLab) -> None:
    """G7: three pods, twelve callers, each adds 20 by compare-and-set."""

    async def add(pod: StateStore) -> None:
        for _ in range(20):
            while True:
                try:
                    held = await pod.get("n", strong=True)
                    number, version = int(held.value or b"0"), held.version
                except NotFound:
                    number, version = 0, 0
                try:
                    await pod.put(Put("n", str(number + 1).encode(), expected_version=version))
                    break
                except Conflict:
                    continue

    async with lab.pod() as a, lab.pod() as b, lab.pod() as c:
        pods = [store(truth) for truth in (a, b, c)]
        await asyncio.gather(*(add(pods[i % 3]) for i in range(12)))
        assert (await pods[0].get("n", strong=True)).value == b"240"


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_a_locked_entry_holds_up_no_other(
    lab: StateLab, database_url: str, request_id: str
) -> None:
    """Neither those of its batch nor later ones; its writers wait, and write once it is free."""
    async with lab.pod() as truth:
        pod = store(truth)
        await pod.put(Put("locked", b"0"))
        async with await psycopg.AsyncConnection.connect(database_url) as other:
            await other.execute("SELECT FROM baton.state WHERE key = 'locked' FOR UPDATE")

            async def put(key: str) -> Record:
                request = f"{request_id}-{key}" if request_id else ""
                return await pod.put(Put(key, b"1", request_id=request))

            waiting = [asyncio.create_task(put("locked")) for _ in range(1 if request_id else 3)]
            for _ in range(3):
                async with asyncio.timeout(2):
                    await asyncio.gather(*(put(f"free-{n}") for n in range(20)))
            assert not [task for task in waiting if task.done()]
            with pytest.raises(StatePersistFailed, match="locked by another session"):
                await pod.put(Put("locked", b"2"))
            # They gave up; what comes now waits anew.
            await asyncio.gather(*waiting, return_exceptions=True)
            late = asyncio.create_task(pod.put(Put("locked", b"3")))
            await asyncio.sleep(0.5)
            assert not late.done()
            await other.rollback()
        assert (await late).value == b"3"
        assert (await pod.get("locked", strong=True)).value == b"3"
        await pod.put(Put("locked", b"4"))


@dataclass(frozen=True)
class Seen:
    """One operation on a key: when it was called and answered, and the version it showed."""

    called: int
    answered: int
    version: int
    wrote: bool


async def test_strong_reads_are_linearizable(lab: StateLab) -> None:
    """G7: versions order the writes of a key; no read or write contradicts real time.

    With one total order given by versions, linearizability is: an operation that begins after
    another was answered never shows a lower version, and a write always a higher one.
    """
    clock = itertools.count()
    history: dict[str, list[Seen]] = {"x": [], "y": []}

    async def act(pod: StateStore, seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(40):
            key, called = dice.choice("xy"), next(clock)
            writes = dice.random() < 0.4
            if writes:
                record = await pod.put(Put(key, str(called).encode()))
            else:
                try:
                    record = await pod.get(key, strong=True)
                except NotFound:
                    continue
            history[key].append(Seen(called, next(clock), record.version, writes))

    async with lab.pod() as a, lab.pod() as b:
        pods = [store(a), store(b)]
        await asyncio.gather(*(act(pods[i % 2], i) for i in range(10)))
    for operations in history.values():
        assert len(operations) > 50
        for first, then in itertools.permutations(operations, 2):
            if first.answered < then.called:
                assert then.version >= first.version
                assert not then.wrote or then.version > first.version


async def test_a_lost_answer_is_safe_to_repeat(lab: StateLab) -> None:
    """G7: the COMMIT happened, its answer did not arrive; the same request_id tells what became."""
    with FaultProxy.before(lab.url) as proxy:
        async with lab.pod(url=proxy.url(lab.url)) as truth, lab.pod() as direct:
            pod, other = store(truth), store(direct)
            first = await pod.put(Put("n", b"1"))
            write = Put("n", b"2", expected_version=first.version, request_id="once")
            proxy.drop_next_answer(b"SELECT")
            with pytest.raises(StatePersistFailed, match="unknown whether"):
                await pod.put(write)
            held = await other.get("n", strong=True)
            assert held.value == b"2"
            await other.put(Put("n", b"3", expected_version=held.version))
            proxy.heal()
            assert await pod.put(write) == held
            assert (await pod.get("n", strong=True)).value == b"3"
            with pytest.raises(Conflict):
                await pod.put(Put("n", b"x", expected_version=first.version, request_id="two"))


async def test_what_was_acknowledged_survives_a_broken_line(lab: StateLab) -> None:
    """G7: whatever breaks, an acknowledged write is there and a failed one says so."""
    acknowledged: dict[str, bytes] = {}
    with FaultProxy.before(lab.url) as proxy:
        async with lab.pod(url=proxy.url(lab.url), seconds=1.0) as truth:
            pod = store(truth)

            async def write(number: int) -> None:
                for turn in range(15):
                    key, value = f"k{number}", str(turn).encode()
                    try:
                        await pod.put(Put(key, value))
                    except StatePersistFailed:
                        continue
                    else:
                        acknowledged[key] = value

            async def cut() -> None:
                for _ in range(10):
                    await asyncio.sleep(0.05)
                    await asyncio.to_thread(proxy.cut)

            await asyncio.gather(*(write(i) for i in range(8)), cut())
    async with lab.pod() as truth:
        pod = store(truth)
        assert acknowledged
        for key, value in acknowledged.items():
            held = (await pod.get(key, strong=True)).value
            assert held is not None
            assert int(held) >= int(value)


class TestWatch:
    async def test_no_change_is_missed_in_a_storm(self, lab: StateLab) -> None:
        """Writers on two pods, slow transactions among them; a third pod's watch ends up right."""
        mirror: dict[str, Record] = {}
        hints = LocalHints()
        async with lab.pod() as a, lab.pod() as b, lab.pod() as c:
            watch = StateWatch(c, hints, monotonic=boottime)
            in_place = asyncio.Event()
            watching = asyncio.create_task(self.mirror(watch, mirror, in_place))
            await asyncio.wait_for(in_place.wait(), 10)

            async def write(truth: PostgresState, seed: int) -> None:
                dice = random.Random(seed)
                pod = StateStore(truth, NoCopies(), hints, nobody_known, monotonic=boottime)
                for turn in range(40):
                    key = f"k{dice.randrange(12)}"
                    if dice.random() < 0.2:
                        await pod.delete(Delete(key))
                    else:
                        await pod.put(Put(key, f"{seed}.{turn}".encode()))

            await asyncio.gather(
                *(write(a, i) for i in range(4)),
                *(write(b, i + 4) for i in range(4)),
                *(self.slow_transaction(lab, f"slow{i}") for i in range(4)),
            )
            held = {record.key: record for record in (await a.page("", "", 100)).records}
            for _ in range(100):
                live = {key: record for key, record in mirror.items() if record.value is not None}
                if live == held:
                    break
                await asyncio.sleep(0.05)
            assert live == held
            watching.cancel()
            await asyncio.wait({watching})

    @staticmethod
    async def mirror(watch: StateWatch, mirror: dict[str, Record], in_place: asyncio.Event) -> None:
        async for record in watch.changes(""):
            if record is None:
                in_place.set()
            else:
                held = mirror.get(record.key)
                assert held is None or held.version < record.version, "told in order, and once"
                mirror[record.key] = record

    @staticmethod
    async def slow_transaction(lab: StateLab, key: str) -> None:
        """Gets its version early and commits late, as a completion with owned state may."""
        async with await psycopg.AsyncConnection.connect(lab.url) as connection:
            await connection.execute(
                "SELECT baton.put_state(%s, %s, 'slow', 0, NULL, NULL)",
                (lab.identity.cluster_id, key),
            )
            await asyncio.sleep(random.uniform(0.1, 0.5))

    async def test_a_late_commit_is_told_after_a_resume(self, lab: StateLab) -> None:
        """The version below the one resumed from was not visible then: it must not be skipped."""
        hints = LocalHints()
        async with lab.pod() as truth:
            watch = StateWatch(truth, hints, monotonic=boottime)
            async with await psycopg.AsyncConnection.connect(lab.url) as slow:
                await slow.execute(
                    "SELECT baton.put_state(%s, 'late', 'x', 0, NULL, NULL)",
                    (lab.identity.cluster_id,),
                )
                seen = await store(truth).put(Put("seen", b"1"))
            early = await store(truth).put(Put("after", b"2"))
            told = await self.first(watch, seen.version, 2)
            assert [record.key for record in told] == ["late", "after"]
            assert told[0].version < seen.version < early.version
            again = await self.first(watch, early.version - 1, 1)
            assert again[0].key in ("late", "seen", "after")

    async def test_only_what_is_new_is_told_after_a_quiet_resume(self, lab: StateLab) -> None:
        async with lab.pod() as truth:
            pod = store(truth)
            records = [await pod.put(Put(f"k{i}", b"v")) for i in range(5)]
            watch = StateWatch(truth, LocalHints(), monotonic=boottime)
            told = await self.first(watch, records[2].version, 2)
            assert told == records[3:]
            everything = await self.first(watch, 0, 5)
            assert everything == records

    async def test_a_resume_after_the_clock_was_set_back_misses_nothing(
        self, lab: StateLab
    ) -> None:
        """The last version told is ten minutes above those that are given out now."""
        async with lab.pod() as truth:
            await store(truth).put(Put("before", b"v"))
            seen = await store(truth).put(Put("seen", b"v"))
            await lab.sql("UPDATE baton.state SET version = version + 600000000 WHERE key = 'seen'")
            later = await store(truth).put(Put("later", b"v"))
            watch = StateWatch(truth, LocalHints(), monotonic=boottime)
            assert await self.first(watch, seen.version + 600_000_000, 1) == [later]
            await store(truth).put(Put("seen", b"w"))
            told = await self.first(watch, seen.version + 600_000_000, 3)
            assert [record.key for record in told] == ["before", "later", "seen"]

    async def test_a_failover_that_lost_commits_hides_no_new_ones(
        self, lab: StateLab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Three commits that the watch has seen are lost, and their numbers used again before it
        looks at the new server."""
        async with lab.pod() as truth:
            now = await truth.snapshot()
            lost = int(now.snapshot.split(":")[1]) + 3
            seen = replace(now, snapshot=f"{lost}:{lost}:", server_started=now.server_started - 1)

            async def moment_before() -> DatabaseSnapshot:
                return seen

            changes = StateWatch(truth, LocalHints(), monotonic=boottime).changes("")
            with monkeypatch.context() as old_server:
                old_server.setattr(truth, "snapshot", moment_before)
                assert await anext(changes) is None
            written = [await store(truth).put(Put(f"k{i}", b"v")) for i in range(5)]
            async with asyncio.timeout(60):
                assert [await anext(changes) for _ in written] == written
            await changes.aclose()

    async def test_expiry_is_told(self, lab: StateLab) -> None:
        async with lab.pod() as truth:
            written = await store(truth).put(Put("k", b"v", ttl_seconds=0.05))
            await asyncio.sleep(0.06)
            assert await truth.sweep(10) == 1
            watch = StateWatch(truth, LocalHints(), monotonic=boottime)
            (gone,) = await self.first(watch, written.version, 1)
            assert (gone.key, gone.value) == ("k", None)
            assert gone.version > written.version

    async def test_without_hints_it_still_tells(self, lab: StateLab) -> None:
        """A lost hint costs time, never a change; nor does Postgres going away for a while."""
        with FaultProxy.before(lab.url) as proxy:
            async with lab.pod(url=proxy.url(lab.url), seconds=1.0) as truth, lab.pod() as other:
                changes = StateWatch(truth, LocalHints(), monotonic=boottime).changes("")
                assert await anext(changes) is None
                proxy.refuse()
                proxy.cut()
                written = await store(other).put(Put("k", b"v"))
                telling = asyncio.ensure_future(anext(changes))
                await asyncio.sleep(1.0)
                assert not telling.done()
                proxy.heal()
                assert await asyncio.wait_for(telling, 10) == written
                await changes.aclose()

    async def test_many_changes_come_in_pages(self, lab: StateLab) -> None:
        async with lab.pod() as truth:
            for start in range(0, 1200, 100):
                await truth.put([Put(f"k{start + i}", b"v") for i in range(100)])
            watch = StateWatch(truth, LocalHints(), monotonic=boottime)
            told = await self.first(watch, 0, 1200)
            assert len({record.key for record in told}) == 1200
            order = [(record.version, record.key) for record in told]
            assert order == sorted(order)

    @staticmethod
    async def first(watch: StateWatch, after: int, count: int) -> list[Record]:
        changes = watch.changes("", after)
        told: list[Record] = []
        async with asyncio.timeout(60):
            async for record in changes:
                if record is not None:
                    told.append(record)
                if len(told) == count:
                    break
        await changes.aclose()
        return told


async def test_the_sweeper_expires_and_tells(lab: StateLab) -> None:
    """More than a batch at once is swept without waiting for the next turn."""
    hints = LocalHints()
    subscription = hints.subscribe("state")
    async with lab.pod() as truth:
        for start in range(0, 450, 90):
            await truth.put([Put(f"k{start + i}", b"v", ttl_seconds=0.01) for i in range(90)])
        await asyncio.sleep(0.05)
        sweeping = asyncio.create_task(StateSweeper(truth, hints, interval_seconds=60).run())
        assert await subscription.wait(10)
        for _ in range(100):
            left = await lab.sql("SELECT count(*) FROM baton.state WHERE value IS NOT NULL")
            if left == [(0,)]:
                break
            await asyncio.sleep(0.05)
        assert left == [(0,)]
        sweeping.cancel()
        await asyncio.wait({sweeping})


async def test_no_failure_ends_the_sweeping(lab: StateLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: an error that nobody thought of is answered by the next turn."""
    again = asyncio.Event()
    failures = [ValueError("on purpose")]

    async def sweep(limit: int) -> int:
        if failures:
            raise failures.pop()
        again.set()
        return 0

    async with lab.pod() as truth:
        monkeypatch.setattr(truth, "sweep", sweep)
        sweeper = StateSweeper(truth, LocalHints(), interval_seconds=0.05)
        sweeping = asyncio.create_task(sweeper.run())
        async with asyncio.timeout(60):
            await again.wait()
        sweeping.cancel()
        await asyncio.wait({sweeping})
