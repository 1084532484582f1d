"""The state of the lock session: whether it is connected, and which statement is in flight on it.

Guarantees: one statement at a time; a result that belongs to a closed session is ignored; failed
connects are retried with exponential backoff, which a successful statement resets.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.model.election_group import NEVER
from sidecar.model.election_types import Statement

_RECONNECT_SECONDS = (0.2, 5.0)  # initial, longest


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
        """Whether to connect now."""
        return not self.connected and not self.connecting and now >= self.connect_at

    def times(self) -> list[float]:
        """The deadline of the statement in flight, and when to connect."""
        started = self.connected or self.connecting
        return [self.statement_deadline, NEVER if started else self.connect_at]

    def opened(self) -> None:
        self.connecting, self.connected = False, True

    def closed(self, now: float) -> None:
        """The session broke, was closed, or could not be opened: reconnect after a pause."""
        self.connecting = self.connected = False
        self.statement, self.statement_deadline = None, NEVER
        initial, longest = _RECONNECT_SECONDS
        pause = min(longest, initial * 2**self.failures)
        self.failures = min(self.failures + 1, 10)
        self.connect_at = now + pause * (0.5 + self.jitter())

    def start(self, statement: Statement, deadline: float) -> None:
        self.statement, self.statement_deadline = statement, deadline

    def finish(self, statement: Statement) -> bool:
        """The result arrived; False if `statement` is not the one in flight."""
        if statement is not self.statement:
            return False
        self.statement, self.statement_deadline, self.failures = None, NEVER, 0
        return True
