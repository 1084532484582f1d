"""The modelled server does what the real one does with the statements of the election.

The same random statements by three sessions on both; epochs and beats are compared by their order,
backends by whose they are.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import psycopg
import pytest

from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.leader_lock import LeaderLock
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.model.election_types import (
    Backend,
    Inspect,
    Inspected,
    Ping,
    Pinged,
    Poll,
    Polled,
    Reap,
    Release,
    Statement,
    Taken,
    Takeover,
    Timers,
)
from sidecar.model.errors import SidecarError
from tests.simulation.invariants import Judge
from tests.simulation.loop import Process
from tests.simulation.postgres_client import ModelLock
from tests.simulation.postgres_model import Server
from tests.simulation.world import Link, World

_NAMES = ("pod1", "pod2", "pod3")
_GROUPS = (1, 2)
_STATEMENTS = 120
# Long, so that only what is asked for ends a session.
_TIMERS = Timers(lease=8.0, server_lease=60.0)
_KINDS = (*("poll", "takeover", "ping") * 2, "release", "inspect", "reap", "end")


@dataclass(frozen=True, slots=True)
class Step:
    """What one session does; epochs and backends are those that it knows by then."""

    kind: str
    who: int
    groups: tuple[int, ...]
    clean: bool


@dataclass
class Known:
    """What a side has told so far, to ask further and to speak of it in common words."""

    epochs: dict[int, list[int]] = field(default_factory=lambda: {g: [0] for g in _GROUPS})
    taken: dict[tuple[int, int], int] = field(default_factory=dict)
    backends: dict[int, Backend] = field(default_factory=dict)

    def statement(self, step: Step) -> Statement | None:
        group = step.groups[0]
        match step.kind:
            case "poll":
                return Poll(_GROUPS, step.groups)
            case "takeover":
                return Takeover(group)
            case "ping":
                epochs = tuple(self.taken.get((step.who, g), 1) for g in step.groups)
                return Ping(step.groups, epochs)
            case "release":
                return Release(group, self.taken.get((step.who, group), 1), clean=step.clean)
            case "inspect":
                return Inspect(_GROUPS)
            case "reap" if group in self.backends:
                return Reap(group, self.backends[group])
        return None

    def told(self, step: Step, answer: Any) -> Any:
        match answer:
            case SidecarError():
                return "failed"
            case Taken():
                group = step.groups[0]
                self.epochs[group].append(answer.epoch)
                self.taken[step.who, group] = answer.epoch
                found = self.epochs[group].index(answer.found.epoch)
                same = answer.clean_timeline == answer.timeline
                return ("taken", found, answer.found.sequence, answer.found_clean, same)
            case Pinged():
                return (sorted(answer.group_ids), sorted(answer.resign_ids), answer.acknowledged)
            case Inspected():
                self.backends = dict(answer.backends)
                return sorted(answer.backends)
            case [*polled]:
                return sorted(self._polled(each) for each in polled)
        return type(answer).__name__

    def _polled(self, polled: Polled) -> tuple[Any, ...]:
        epochs, holder = self.epochs[polled.group_id], polled.holder
        epoch, beat = epochs.index(holder.epoch), epochs.index(polled.beat.epoch)
        place = (polled.group_id, polled.locked, epoch, holder.runner_id, holder.clean)
        return (*place, beat, polled.beat.sequence)


def _script(seed: int) -> list[Step]:
    chance = random.Random(seed)
    return [
        Step(
            chance.choice(_KINDS),
            chance.randrange(len(_NAMES)),
            tuple(chance.sample(_GROUPS, chance.randint(1, 2))),
            chance.random() < 0.6,
        )
        for _ in range(_STATEMENTS)
    ]


def _modelled(script: Sequence[Step]) -> list[Any]:
    world = World(0)
    server = Server(world, Judge(world), _GROUPS)
    server.stumble_probability = 0.0
    processes = [Process(world.loop, name, rate=1.0, offset=0.0) for name in _NAMES]
    locks = [ModelLock(process, server, Link(world), _TIMERS) for process in processes]
    known = Known()

    def run(who: int, work: Any) -> Any:
        task = processes[who].spawn(_caught(work), "contract")
        world.loop.run_for(1.0)
        return task.result()

    for who in range(len(_NAMES)):
        run(who, locks[who].open())
    told = []
    for step in script:
        if step.kind == "end":
            run(step.who, locks[step.who].open())
        elif statement := known.statement(step):
            told.append((step, known.told(step, run(step.who, locks[step.who].execute(statement)))))
            if told[-1][1] == "failed":
                run(step.who, locks[step.who].open())
    for process in processes:
        process.kill()
    world.loop.run_for(1.0)
    return told


async def _real(script: Sequence[Step], url: str) -> list[Any]:
    await migrate(url, "baton")
    database = Database(lambda: url, schema="baton", size=1, statement_seconds=5.0)
    membership = Membership(database, runner_id="test", host="test", version="0")
    await membership.join("orders", "", ["default", "other"])
    await database.close()
    locks = [
        LeaderLock(
            lambda: url, schema="baton", channel="c", runner_id=name, host="h", timers=_TIMERS
        )
        for name in _NAMES
    ]
    known, told = Known(), []
    watcher = await psycopg.AsyncConnection.connect(url, autocommit=True)
    try:
        for lock in locks:
            await lock.open()
        for step in script:
            lock = locks[step.who]
            if step.kind == "end":
                await _reopened(lock, watcher)
            elif statement := known.statement(step):
                told.append((step, known.told(step, await _caught(lock.execute(statement)))))
                if told[-1][1] == "failed":
                    await _reopened(lock, watcher)
                elif isinstance(statement, Reap):  # the backend has been told; it takes a moment
                    await _gone(watcher, statement.backend.pid, statement.backend.changed_at)
    finally:
        for lock in locks:
            await lock.close()
        await watcher.close()
    return told


async def _reopened(lock: LeaderLock, watcher: psycopg.AsyncConnection) -> None:
    assert lock._connection is not None
    pid = lock._connection.info.backend_pid  # 0: the server has ended it
    await lock.close()
    await _gone(watcher, pid)
    await lock.open()


async def _gone(
    watcher: psycopg.AsyncConnection, pid: int, changed_at: datetime | None = None
) -> None:
    """Wait until the server has ended this backend, unless it did something since `changed_at`.

    Its locks are free before it is gone from the list.
    """
    alive = (
        "SELECT 1 FROM pg_stat_activity"
        " WHERE pid = %s AND (state_change = %s::timestamptz) IS NOT FALSE"
    )
    async with asyncio.timeout(60):
        while await (await watcher.execute(alive, (pid, changed_at))).fetchone():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _caught(work: Any) -> Any:
    try:
        return await work
    except SidecarError as error:
        return error


@pytest.mark.parametrize("seed", range(2))
def test_model_of_the_lock_answers_as_postgres_does(database_url: str, seed: int) -> None:
    """G1, G2: what is known of locks, epochs and beats is known of both."""
    script = _script(seed)
    modelled, real = _modelled(script), asyncio.run(_real(script, database_url))
    assert modelled == real
    assert sum(told == "failed" for _, told in real) < len(real) / 4


def test_other_rules_would_be_noticed() -> None:
    """A lock that is not taken where it is free changes the story."""
    script = _script(0)
    shy = [replace(s, groups=(1,)) if s.kind == "poll" else s for s in script]
    assert _modelled(script) != _modelled(shy)
