"""The judge of the dead man's switch (G10), by plain arithmetic on what stands in the database.

A leader steps down only for staleness that is real, that arose in its own term and lasted for the
whole limit within it, and so rarely that leadership never goes round in circles.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from sidecar.model.health import STEP_DOWN_BACK_OFF_SECONDS, Vitals, VitalsReading
from tests.simulation.settings import STALE_SECONDS
from tests.simulation.world import World

LOOK_SECONDS = 0.5
# Whoever calls something stale read it not long before.
READING_SECONDS = 6.0
_CLOCKS_DIFFER = 0.95  # the database's, the pod's and ours, and we look seldom
_Key = tuple[str, str]


class HealthJudge:
    """`vitals` reads the database as it is now."""

    def __init__(self, world: World) -> None:
        self.vitals: Callable[[], VitalsReading]
        self._world = world
        self._fresh_at: dict[_Key, float] = {}
        self._stale_at: dict[tuple[_Key, str], float] = {}  # by group: it may move to another
        self._limits: dict[_Key, float] = {}
        self._stepped_down_at: dict[tuple[str, str], float] = {}
        self._clock_stepped_at = float("-inf")
        self._stale_before_step: set[_Key] = set()

    def look(self) -> None:
        reading, now = self.vitals(), self._world.now
        for vitals in reading.entities:
            if is_silent(vitals, reading.now, early=LOOK_SECONDS):
                self._stale_at[vitals.key, vitals.group] = now
                # Somebody may change it before the leader reads it again.
                self._limits[vitals.key] = limit_seconds(vitals)
            if not is_silent(vitals, reading.now, early=-LOOK_SECONDS):
                self._fresh_at[vitals.key] = now

    def clock_stepped(self) -> None:
        now, seen = self._world.now, self._stale_at.items()
        # What was stale when the leader read it last was so by a clock that had not stepped.
        self._stale_before_step = {key for (key, _), at in seen if now - at < READING_SECONDS}
        self._clock_stepped_at = now

    def steps_down(self, process: str, group: str, since: float) -> None:
        """A sidecar gives its group up, which it has led since `since`, for staleness."""
        stale = [*self._stale_of(group)]
        if not stale:
            self._world.violated(f"G10: {process} steps down without a cause")
        elif not any(self._is_own(key, since) for key in stale):
            self._world.violated(f"G10: {process} steps down for what it inherited: {stale}")

    def paces(self, process: str, group: str) -> None:
        """Not again before the back-off is over."""
        now, place = self._world.now, (process, group)
        last = self._stepped_down_at.get(place, float("-inf"))
        self._stepped_down_at[place] = now
        if now - last < STEP_DOWN_BACK_OFF_SECONDS * _CLOCKS_DIFFER:
            self._world.violated(f"G10: round in circles: {process} steps down from {group} again")

    def _stale_of(self, group: str) -> Iterator[_Key]:
        """What was stale a moment ago, and of this group then."""
        for (key, its_group), at in self._stale_at.items():
            if its_group == group and self._world.now - at < READING_SECONDS:
                yield key

    def _is_own(self, key: _Key, since: float) -> bool:
        read_before = self._world.now - self._clock_stepped_at < READING_SECONDS
        if not (read_before and key in self._stale_before_step):
            since = max(since, self._clock_stepped_at)  # Time that did not pass is no silence.
        had_its_chance = self._world.now - since >= self._limits[key] * _CLOCKS_DIFFER
        return had_its_chance and self._fresh_at.get(key, float("-inf")) >= since


def limit_seconds(vitals: Vitals) -> float:
    """How long it may be without whatever is expected first."""
    if not vitals.expected_seconds:
        return STALE_SECONDS
    return min(STALE_SECONDS, max(2 * vitals.expected_seconds, STALE_SECONDS / 12))


def is_silent(vitals: Vitals, now: datetime, *, early: float = 0.0) -> bool:
    """Too long without a heartbeat or a success, or it will be so `early` seconds from now."""
    if not vitals.watched:
        return False
    now += timedelta(seconds=early)
    beat = max(vitals.heartbeat_at or vitals.counted_from, vitals.counted_from)
    success = max(vitals.last_success_at or vitals.counted_from, vitals.counted_from)
    pace = max(2 * vitals.expected_seconds, STALE_SECONDS / 12)
    late = vitals.expected_seconds > 0 and (now - success).total_seconds() > pace
    return late or (now - beat).total_seconds() > STALE_SECONDS
