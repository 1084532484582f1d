"""Drives a pure election by hand, for the unit tests of the election."""

from collections.abc import Mapping
from typing import Any

from sidecar.model.election import Election
from sidecar.model.election_types import (
    Beat,
    Become,
    Connect,
    Effect,
    Holder,
    Phase,
    Pinged,
    Polled,
    Result,
    StartWork,
    Statement,
    Taken,
    Timers,
)
from sidecar.model.term import Term

G = 7
OTHER = 8
EPOCH = 1000
TERM = Term("default", G, EPOCH)
OLD = Beat(900, 5, "1")
T = Timers()


class Driver:
    """Feeds one election by hand; time only passes when a test says so."""

    def __init__(
        self, timers: Timers = T, *, groups: Mapping[str, int] | None = None, **options: Any
    ) -> None:
        self.now = 100.0
        self.election = Election("me", timers, lambda: 0.0, **options)
        self.election.join(groups or {"default": G}, self.now)
        self.election.app_health_changed(True, self.now)
        self.election.tick(self.now)
        assert self.election.effects() == [Connect()]
        self.election.connect_succeeded(self.now)

    def phase(self) -> Phase:
        return self.election.groups[G].phase

    def idle(self) -> bool:
        return self.election.idle

    def ask(self) -> Statement | None:
        return self.election.next_statement(self.now)

    def answer(self, result: Result, after: float = 0.0) -> None:
        statement = self.ask()
        assert statement
        sent_at, self.now = self.now, self.now + after
        self.election.result_received(statement, result, sent_at=sent_at, now=self.now)

    def polled(
        self, *, locked: bool = False, clean: bool = False, beat: Beat = OLD, after: float = 0.0
    ) -> None:
        self.answer([Polled(G, locked, Holder(900, "other", "host", clean), beat)], after)

    def taken(
        self, *, clean: bool = False, clean_on: str = "1", found: Beat = OLD, timeline: str = "1"
    ) -> None:
        self.answer(Taken(EPOCH, found, clean, clean_on, timeline))

    def pass_time(self, seconds: float) -> list[Effect]:
        self.now += seconds
        self.election.tick(self.now)
        return self.election.effects()

    def effects(self) -> list[Effect]:
        return self.election.effects()

    def take_over(self) -> None:
        self.polled(locked=True, clean=True)
        self.taken(clean=True)
        assert self.effects() == [Become(TERM, T.callback_timeout)]

    def lead(self) -> None:
        self.take_over()
        self.election.become_finished(TERM, True, self.now)
        assert self.effects() == [StartWork(TERM)]

    def ping(self, result: Pinged | None = None, after: float = 0.0) -> None:
        self.now += T.ping
        self.answer(result or Pinged(frozenset({G})), after)
