"""A circuit breaker in front of the app: stops hammering one that fails every call.

    closed ── `failures` failed calls in a row ──► open ── `open_seconds` ──► half open (a probe)
       ▲                                             ▲                            │       │
       └────────────── any call succeeded ───────────┼────────────────────────────┘       │
                                                     └─────────── the probe failed ───────┘

Guarantees: while open no call is let through, while half open one in `open_seconds`: a probe that
takes longer than that may be a long run of a healthy app, and the next one is let through beside
it. Time is an argument.
"""

from dataclasses import dataclass
from math import inf


@dataclass(slots=True)
class Breaker:
    """Ask `room`, say `began`, then exactly one of `succeeded`, `failed`, `abandoned`."""

    failures_max: int
    open_seconds: float
    _failures: int = 0
    _opened_at: float | None = None
    _probed_at: float | None = None  # when the last probe began, while nothing is known of it

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None

    def room(self, now: float) -> float:
        """How many calls may begin now: any number, one probe, or none."""
        if self._opened_at is None:
            return inf
        probing = self._probed_at is not None and now < self._probed_at + self.open_seconds
        return 0 if probing or now < self.probe_at(now) else 1

    def probe_at(self, now: float) -> float:
        """When the next call may be tried."""
        return now if self._opened_at is None else self._opened_at + self.open_seconds

    def began(self, now: float) -> bool:
        """A call begins; is it a probe?"""
        if self.is_open:
            self._probed_at = now
        return self.is_open

    def succeeded(self) -> None:
        """The app answered, whatever it said."""
        self._failures, self._opened_at, self._probed_at = 0, None, None

    def failed(self, now: float, *, probe: bool) -> None:
        """The call was refused, broke, ran out of time, or ended in an error."""
        if self._opened_at is None:
            self._failures += 1
            if self._failures >= self.failures_max:
                self._opened_at = now
        elif probe:  # a call begun before the breaker opened says nothing new
            self._opened_at, self._probed_at = now, None

    def abandoned(self, *, probe: bool) -> None:
        """We ended the call ourselves: it says nothing about the app."""
        if probe:
            self._probed_at = None
