"""The worker lease: the right of this runner to execute jobs.

    idle ── register ──▶ held ── a beat was acknowledged ──▶ held, trusted for longer
                           │ ── trust − MARGIN passed ──▶ over: everything is cancelled
                           └─ fenced ─────────────────▶ over

Trusted until the send time of the last acknowledged beat + TRUST_SECONDS. A rescuer fences a
worker whose beat has not changed for SILENT_SECONDS since the rescuer received it, on its own
clock: that is after the trust of the worker has ended, whatever its clock shows. Only the rate of
clocks is assumed to agree, never their time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

BEAT_SECONDS = 1.0
TRUST_SECONDS = 3.0
MARGIN_SECONDS = 0.3  # before the end of the trust everything is cancelled
SILENT_SECONDS = 3.2  # at least 1.05 × TRUST_SECONDS: clocks may run at different rates


@dataclass(frozen=True, slots=True)
class Lease:
    """One unbroken lease of a worker."""

    worker_id: int  # the fencing token: the database refuses writes of a fenced worker

    @property
    def epoch(self) -> int:
        return self.worker_id


@dataclass(slots=True)
class LeaseTrust:
    """How long a lease can be trusted. `sent_at`: when its registration was sent."""

    sent_at: float
    over: bool = False

    def acknowledged(self, sent_at: float) -> None:
        """A beat that was sent then was stored; a late answer never shortens the trust."""
        self.sent_at = max(self.sent_at, sent_at)

    @property
    def ends_at(self) -> float:
        """When the work must have been cancelled."""
        return self.sent_at + TRUST_SECONDS - MARGIN_SECONDS

    def trusted_seconds(self, now: float) -> float:
        return 0.0 if self.over else max(0.0, self.ends_at - now)


@dataclass(frozen=True, slots=True)
class Beat:
    """The last beat of another worker. `fenced`: its jobs have to be returned."""

    worker_id: int
    sequence: int
    fenced: bool = False


@dataclass(slots=True)
class Silence:
    """Which workers are silent, on the clock of the one who watches."""

    _seen: dict[int, tuple[int, float]] = field(default_factory=dict)

    def silent(self, beats: Iterable[Beat], now: float) -> list[Beat]:
        """The workers to fence, and those that were fenced and still have to be cleared.

        `now` is when the beats were received.
        """
        seen, found = self._seen, []
        self._seen = {}
        for beat in beats:
            sequence, since = seen.get(beat.worker_id, (None, now))
            if sequence != beat.sequence:
                since = now
            self._seen[beat.worker_id] = (beat.sequence, since)
            if beat.fenced or now - since >= SILENT_SECONDS:
                found.append(beat)
        return found
