"""What time is it in the database, by our own monotonic clock?

The database decides what is due; this estimate only says when to ask, so that a tick is asked for
at its time and not a poll later. Each answer carries the database's time; the one that travelled
shortest tells most.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SAMPLE_SECONDS_MAX = 30.0  # older samples give way: clocks drift apart
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class DatabaseClock:
    """`asked` and `answered` are readings of one monotonic clock, in seconds."""

    _offset: float = 0.0
    _doubt: float = float("inf")
    _taken_at: float = float("-inf")

    def learn(self, now: datetime, *, asked: float, answered: float) -> float:
        """By how many seconds, at least, one of the clocks was set since the last sample."""
        doubt = (answered - asked) / 2
        offset = (now - _EPOCH).total_seconds() - (asked + answered) / 2
        old = answered - self._taken_at > SAMPLE_SECONDS_MAX
        # Two samples that cannot both be right: one of the clocks was set.
        stepped = max(0.0, abs(offset - self._offset) - doubt - self._doubt)
        if old or stepped or doubt <= self._doubt:
            self._offset, self._doubt, self._taken_at = offset, doubt, answered
        return stepped

    def time(self, at: float) -> datetime:
        return _EPOCH + timedelta(seconds=at + self._offset)

    def seconds_until(self, instant: datetime, at: float) -> float:
        """Never negative."""
        return max(0.0, (instant - _EPOCH).total_seconds() - self._offset - at)
