"""What people look at: terms of the past, runners, steps, statistics of runs. Types only."""

from dataclasses import dataclass
from datetime import datetime

STATS_RUNS_MAX = 20_000
STATS_PARTS = 48


@dataclass(frozen=True, slots=True)
class TermRecord:
    group: str
    group_id: int
    epoch: int
    runner_id: str
    host: str
    taken_at: datetime
    ended_at: datetime | None
    why: str


@dataclass(frozen=True, slots=True)
class RunnerRecord:
    runner_id: str
    host: str
    version: str
    alive: bool
    healthy: bool | None
    campaigning: bool
    config_revision: int
    leads: tuple[str, ...]
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class RunStep:
    step: str
    stored_at: datetime | None
    attempt: int
    size: int


@dataclass(frozen=True, slots=True)
class Counts:
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    live: int = 0


@dataclass(frozen=True, slots=True)
class NameStats:
    """The percentiles are 50, 95, 99 and 100, in seconds; None: there were no runs to measure."""

    name: str
    counts: Counts
    lateness: tuple[float, ...] | None
    durations: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class RunStats:
    since: datetime
    until: datetime
    truncated: bool
    names: tuple[NameStats, ...]
    parts: tuple[Counts, ...]  # of the window, oldest first
