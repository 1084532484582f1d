"""Estimates the database's clock from the local monotonic clock.

The database decides which ticks are due. The estimate only decides when to query, so that a tick is
claimed at its time and not one poll later. Each reply carries the database's time; the sample with
the shortest round trip is the most accurate one.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SAMPLE_SECONDS_MAX = 30.0  # an older sample is replaced, because clocks drift
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class DatabaseClock:
    """`asked` and `answered` are readings of one monotonic clock, in seconds."""

    _offset: float = 0.0
    _error_seconds: float = float("inf")
    _taken_at: float = float("-inf")

    def learn(self, now: datetime, *, asked: float, answered: float) -> float:
        """Add a sample; return the least number of seconds by which either clock was stepped."""
        error_seconds = (answered - asked) / 2
        offset = (now - _EPOCH).total_seconds() - (asked + answered) / 2
        old = answered - self._taken_at > SAMPLE_SECONDS_MAX
        # If the error bounds of two samples do not overlap, one of the clocks was stepped.
        stepped = max(0.0, abs(offset - self._offset) - error_seconds - self._error_seconds)
        if old or stepped or error_seconds <= self._error_seconds:
            self._offset, self._error_seconds, self._taken_at = offset, error_seconds, answered
        return stepped

    def time(self, at: float) -> datetime:
        """The estimated time of the database at the monotonic time `at`."""
        return _EPOCH + timedelta(seconds=at + self._offset)

    def seconds_until(self, instant: datetime, at: float) -> float:
        """The time from `at` (monotonic) to `instant` (database time); never negative."""
        return max(0.0, (instant - _EPOCH).total_seconds() - self._offset - at)
