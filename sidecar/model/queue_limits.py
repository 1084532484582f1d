"""How many parked jobs of a limited queue may be admitted now.

Guarantees: never more jobs of a queue are admitted than `cluster_max_running`; starts follow `rate`
per second, with at most one second's worth at once. A new leader begins with an empty bucket, so a
change of leader never doubles a rate.
"""

from dataclasses import dataclass, field

ROOM_MAX = 1000  # jobs of a queue that are admitted at once


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """0: no limit. `admitted`: jobs of the queue that run or may start."""

    queue: str
    cluster_max_running: int = 0
    rate: float = 0.0
    admitted: int = 0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


@dataclass(slots=True)
class Rates:
    """The token buckets of one leader."""

    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def room(self, limits: QueueLimits, now: float) -> int:
        """How many jobs of the queue may be admitted at `now`."""
        room = ROOM_MAX
        if limits.cluster_max_running:
            room = min(room, limits.cluster_max_running - limits.admitted)
        if limits.rate:
            room = min(room, int(self._filled(limits, now).tokens))
        return max(0, room)

    def admitted(self, queue: str, count: int) -> None:
        if bucket := self._buckets.get(queue):
            bucket.tokens -= count

    def next_token_seconds(self, limits: QueueLimits, now: float) -> float | None:
        """When the rate allows another job; None: the rate does not hold the queue back."""
        if not limits.rate:
            return None
        missing = 1.0 - self._filled(limits, now).tokens
        return max(0.0, missing / limits.rate)

    def _filled(self, limits: QueueLimits, now: float) -> _Bucket:
        bucket = self._buckets.setdefault(limits.queue, _Bucket(0.0, now))
        earned = max(0.0, now - bucket.filled_at) * limits.rate
        bucket.tokens = min(max(1.0, limits.rate), bucket.tokens + earned)
        bucket.filled_at = now
        return bucket
