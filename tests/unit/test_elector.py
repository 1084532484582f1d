"""The elector: whatever a try of its session fails of, there is a next one; what a term leaves
behind does not reach the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic

import pytest
from structlog.testing import capture_logs

from sidecar.election.elector import Elector
from sidecar.execution.authority import Authority
from sidecar.model.election import Election
from sidecar.model.election_types import (
    Beat,
    Done,
    Holder,
    Ping,
    Pinged,
    Poll,
    Polled,
    Result,
    Statement,
    Taken,
    Takeover,
    Timers,
)
from sidecar.model.term import LossReason, Term


class _Session:
    """Fails as told, then answers that nothing is free."""

    def __init__(self, opening: Sequence[Exception], executing: Sequence[Exception]) -> None:
        self._opening, self._executing = [*opening], [*executing]
        self.answered = asyncio.Event()
        self.opened = 0

    async def open(self) -> None:
        self.opened += 1
        if self._opening:
            raise self._opening.pop()

    async def execute(self, statement: Statement) -> Result:
        if self._executing:
            raise self._executing.pop()
        self.answered.set()
        assert isinstance(statement, Poll)
        nothing: list[Polled] = []
        return nothing

    def hang_up(self) -> None: ...

    async def close(self) -> None: ...


class _App:
    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None: ...
    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None: ...


async def test_no_failure_of_the_session_ends_the_election() -> None:
    """G8: an error that nobody thought of is answered by a new session, as any other."""
    session = _Session([IndexError("no rows"), OSError("is empty")], [KeyError("epoch")])
    election = Election("me", Timers(), lambda: 0.0)

    async def work(authority: Authority) -> None: ...

    elector = Elector(election, session, _App(), monotonic, takeover_sla=10.0)
    election.join({"default": 7}, monotonic())
    running = asyncio.create_task(elector.run(while_leading=work))
    try:
        async with asyncio.timeout(30):
            await session.answered.wait()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert session.opened == 4


class _Free:
    """A server on which every lock is free, and was released cleanly; epochs rise."""

    def __init__(self) -> None:
        self.hung_up = 0
        self.epoch = 1000
        self.stuck: asyncio.Event | None = None  # statements wait for it, and then fail
        self.waiting = asyncio.Event()

    async def open(self) -> None: ...

    async def execute(self, statement: Statement) -> Result:
        if stuck := self.stuck:
            self.waiting.set()
            await stuck.wait()
            raise OSError("the connection was lost long ago")
        never = Beat(0, 0, "1")
        match statement:
            case Poll():
                free = Holder(self.epoch, clean=True)
                return [Polled(id_, True, free, never) for id_ in statement.try_ids]
            case Takeover():
                self.epoch += 1
                return Taken(self.epoch, never, True, "1", "1")
            case Ping():
                return Pinged(frozenset(statement.group_ids))
        return Done()

    def hang_up(self) -> None:
        self.hung_up += 1

    async def close(self) -> None: ...


class _Work:
    """Remembers each term; takes some steps to end, as calls that are cancelled do."""

    def __init__(self) -> None:
        self.authorities: asyncio.Queue[Authority] = asyncio.Queue()
        self.ended = 0

    async def __call__(self, authority: Authority) -> None:
        self.authorities.put_nowait(authority)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            self.ended += 1


class _Listening(_App):
    """Notes how much work had ended when it was told of a loss."""

    def __init__(self, work: _Work) -> None:
        self._work = work
        self.told: asyncio.Queue[int] = asyncio.Queue()

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        self.told.put_nowait(self._work.ended)


@asynccontextmanager
async def _campaigning(
    session: _Free, work: _Work, app: _App, *, takeover_sla: float = 10.0
) -> AsyncIterator[Elector]:
    election = Election("me", Timers(), lambda: 0.0)
    elector = Elector(election, session, app, monotonic, takeover_sla=takeover_sla)
    election.join({"default": 7}, monotonic())
    election.app_health_changed(True, monotonic())
    running = asyncio.create_task(elector.run(while_leading=work))
    try:
        async with asyncio.timeout(30):
            yield elector
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_the_app_is_told_of_the_loss_once_its_calls_have_ended() -> None:
    """G1: in this order: stop, cancel what is executed, OnLoseLeadership."""
    work = _Work()
    app = _Listening(work)
    async with _campaigning(_Free(), work, app) as elector:
        await work.authorities.get()
        elector.handle(elector.election.disconnected)
        assert await app.told.get() == 1


async def test_a_term_that_is_over_is_not_trusted_because_the_next_one_is() -> None:
    """G1: trust is of one term; getting the lock again is another."""
    work = _Work()
    async with _campaigning(_Free(), work, _App()) as elector:
        old = await work.authorities.get()
        assert old.trusted_seconds() > 0
        elector.handle(elector.election.disconnected)
        new = await work.authorities.get()
        assert new.term.epoch > old.term.epoch
        assert new.trusted_seconds() > 0
        assert old.trusted_seconds() == 0


async def test_a_late_failure_of_a_session_given_up_costs_no_term() -> None:
    """G8: it says nothing of the session that came after it."""
    session, work = _Free(), _Work()
    session.stuck = stuck = asyncio.Event()
    async with _campaigning(session, work, _App()) as elector:
        await session.waiting.wait()
        session.stuck = None
        elector.handle(elector.election.disconnected)
        authority = await work.authorities.get()
        stuck.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert authority.trusted
        assert session.hung_up == 1


@pytest.mark.parametrize(("sla", "told"), [(0.0, True), (3600.0, False)])
async def test_a_takeover_that_took_too_long_is_told(sla: float, *, told: bool) -> None:
    """G8: which group, how long it took, and what was allowed."""
    work = _Work()
    with capture_logs() as lines:
        async with _campaigning(_Free(), work, _App(), takeover_sla=sla):
            term = (await work.authorities.get()).term
    found = [line for line in lines if line["event"] == "takeover_sla_exceeded"]
    assert bool(found) == told
    for line in found:
        assert (line["log_level"], line["group"], line["sla"]) == ("warning", "default", sla)
        assert line["epoch"] == term.epoch
        assert line["seconds"] >= 0
