"""What the dead man's switch knows of one group that is led here."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf

from sidecar.execution.authority import Authority
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.health import EntityKey, Judgement, Vitals, VitalsReading

SMALL_GROUP_MAX = 500


@dataclass(slots=True)
class LedGroup:
    """The vitals of one led group, and what was concluded from them."""

    authority: Authority
    reading: VitalsReading
    read_at: float  # boottime of the answer
    judgement: Judgement
    judging: asyncio.Lock = field(default_factory=asyncio.Lock)
    judged_at: float = -inf  # boottime
    success_seen_at: float = -inf  # boottime of the last success of any entity
    outdated: asyncio.Event = field(default_factory=asyncio.Event)  # read again now
    watched: bool = True  # false: the term is ending, its last judgement stays in force
    changed: bool = True  # read again: entities changed, or our first heartbeats were not read yet
    known_at: float = 0.0  # boottime when all heartbeats were last read or written
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    successes: dict[EntityKey, datetime] = field(default_factory=dict)  # not yet read
    problem: str = ""  # why Postgres could not be read or written last

    def now(self, clock: float) -> datetime:
        """The database's time, extrapolated with our own clock."""
        return self.reading.now + timedelta(seconds=clock - self.read_at)

    @property
    def is_large(self) -> bool:
        return len(self.reading.entities) > SMALL_GROUP_MAX

    def as_of_now(self, vitals: Vitals) -> Vitals:
        """With the heartbeat that was written since the reading."""
        written_at = self.reading.all_heartbeats_at
        if written_at is None or (vitals.heartbeat_at and vitals.heartbeat_at >= written_at):
            return vitals
        return replace(vitals, heartbeat_at=written_at)


def unread(
    successes: Mapping[EntityKey, datetime], reading: VitalsReading
) -> dict[EntityKey, datetime]:
    read = {each.key: each.last_success_at for each in reading.entities if each.key in successes}
    return {key: successes[key] for key, at in read.items() if at is None or at < successes[key]}
