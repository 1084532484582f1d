"""A circuit breaker for calls to the app: it stops calling an app that fails every call.

    closed ── `failures` failed calls in a row ──► open ── `open_seconds` ──► half open (a probe)
       ▲                                             ▲                            │       │
       └────────────── any call succeeded ───────────┼────────────────────────────┘       │
                                                     └─────────── the probe failed ───────┘

Guarantees: an open breaker allows no calls; a half-open breaker allows one call per `open_seconds`.
A probe that takes longer may be a long run of a healthy app, so the breaker then allows another
probe at the same time. Time is an argument.
"""

from dataclasses import dataclass
from math import inf


@dataclass(slots=True)
class Breaker:
    """Per call: check `room`, call `began`, then one of `succeeded`, `failed`, `abandoned`."""

    failures_max: int
    open_seconds: float
    _failures: int = 0
    _opened_at: float | None = None
    _probed_at: float | None = None  # start of the last probe, until its result is known

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None

    def room(self, now: float) -> float:
        """The number of calls that may begin now: infinite, 1 (a probe) or 0."""
        if self._opened_at is None:
            return inf
        probing = self._probed_at is not None and now < self._probed_at + self.open_seconds
        return 0 if probing or now < self.probe_at(now) else 1

    def probe_at(self, now: float) -> float:
        """The time from which the next call is allowed."""
        return now if self._opened_at is None else self._opened_at + self.open_seconds

    def began(self, now: float) -> bool:
        """Record the start of a call; return whether it is a probe."""
        if self.is_open:
            self._probed_at = now
        return self.is_open

    def succeeded(self) -> None:
        """Record that the app answered, whatever the answer was."""
        self._failures, self._opened_at, self._probed_at = 0, None, None

    def failed(self, now: float, *, probe: bool) -> None:
        """Record a call that was refused, lost its connection, timed out or returned an error."""
        if self._opened_at is None:
            self._failures += 1
            if self._failures >= self.failures_max:
                self._opened_at = now
        elif probe:  # ignore calls that began before the breaker opened
            self._opened_at, self._probed_at = now, None

    def abandoned(self, *, probe: bool) -> None:
        """Record a call that the sidecar cancelled: it is no evidence about the app."""
        if probe:
            self._probed_at = None
