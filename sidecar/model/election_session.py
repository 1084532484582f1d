"""The lock session as the election sees it: whether it stands, and what is under way on it.

Guarantees: one statement at a time; an answer that belongs to a session that was given up is no
answer; a session that failed is tried again, later each time, until one has answered.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.model.election_group import NEVER
from sidecar.model.election_words import Statement

_RECONNECT_SECONDS = (0.2, 5.0)  # first, longest


@dataclass(slots=True)
class Session:
    """`jitter` returns a number in [0, 1)."""

    jitter: Callable[[], float]
    connected: bool = False
    connecting: bool = False
    connect_at: float = NEVER
    statement: Statement | None = None
    statement_deadline: float = NEVER
    failures: int = 0

    @property
    def free(self) -> bool:
        return self.connected and self.statement is None

    def due(self, now: float) -> bool:
        """Is it time to connect?"""
        return not self.connected and not self.connecting and now >= self.connect_at

    def times(self) -> list[float]:
        """When the statement under way is too late, and when to connect."""
        idle = self.connected or self.connecting
        return [self.statement_deadline, NEVER if idle else self.connect_at]

    def opened(self) -> None:
        self.connecting, self.connected = False, True

    def closed(self, now: float) -> None:
        """It broke, was given up, or could not be had: try again, but not at once."""
        self.connecting = self.connected = False
        self.statement, self.statement_deadline = None, NEVER
        first, longest = _RECONNECT_SECONDS
        pause = min(longest, first * 2**self.failures)
        self.failures = min(self.failures + 1, 10)
        self.connect_at = now + pause * (0.5 + self.jitter())

    def sent(self, statement: Statement, deadline: float) -> None:
        self.statement, self.statement_deadline = statement, deadline

    def answered(self, statement: Statement) -> bool:
        """Is this the answer that is waited for?"""
        if statement is not self.statement:
            return False
        self.statement, self.statement_deadline, self.failures = None, NEVER, 0
        return True
