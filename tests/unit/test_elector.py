"""The elector and its session: whatever a try fails of, there is a next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

from sidecar.election import Elector
from sidecar.model.election import Election
from sidecar.model.election_words import Poll, Polled, Result, Statement, Timers
from sidecar.model.term import LossReason, Tenure, Term


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

    async def work(tenure: Tenure) -> None: ...

    elector = Elector(election, session, _App(), work, monotonic, takeover_sla=10.0)
    election.join({"default": 7}, monotonic())
    running = asyncio.create_task(elector.run())
    try:
        async with asyncio.timeout(30):
            await session.answered.wait()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert session.opened == 4
