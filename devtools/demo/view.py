"""The live view: renders a snapshot and the latest events as rows of text. Pure.

Guarantees: never more rows or columns than the terminal has; the plain text of a row is the same
with and without colour; text from an app or a user cannot control the terminal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from devtools.demo.events import LATE_SECONDS, lateness
from devtools.demo.model import (
    COORDINATOR,
    DEFAULT,
    ORDER_FLOW,
    ORDER_STEPS,
    RECEIPT,
    Event,
    GroupLeader,
    Run,
    Schedule,
    Snapshot,
)
from sidecar.logs import visible

_STYLES = {
    "title": "1", "dim": "2", "phase": "1;36", "good": "32", "warn": "33", "bad": "31",
    "leader": "1;32", "dead": "31", "plain": "",
}  # fmt: skip
_POD_STYLES = {"leader": "leader", "dead": "dead", "starting": "warn", "stopping": "warn"}
_LEFT_COLUMNS = 37  # the pods; the groups are to their right
_RECENT = timedelta(seconds=6)


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a row, in one style."""

    text: str
    style: str = "plain"


Row = Sequence[Span]


@dataclass(frozen=True, slots=True)
class Page:
    """What the view shows."""

    headline: str
    elapsed_seconds: float
    total_seconds: float
    snapshot: Snapshot
    events: Sequence[Event]


def render(page: Page, columns: int, rows: int, *, colour: bool) -> list[str]:
    """The rows to draw, cut to the size of the terminal."""
    top = [_title(page, columns), [Span(f" {page.headline}", "phase")], []]
    top += _pods_and_groups(page.snapshot)
    top += [[], *_schedules_and_singleton(page.snapshot), []]
    room = max(0, rows - len(top))
    top += [_event(event, page.snapshot.at) for event in list(page.events)[-room:] if room]
    return [_paint(row, columns, colour) for row in top[:rows]]


def _title(page: Page, columns: int) -> Row:
    left = f" Baton demo: {len(page.snapshot.pods)} pods of one app, one leader per group"
    right = f"{page.elapsed_seconds:.0f} s of {page.total_seconds:.0f} s "
    return [Span(left.ljust(columns - len(right)) + right, "title")]


def _pods_and_groups(snapshot: Snapshot) -> list[Row]:
    left: list[Row] = [[Span(" POD     STATE     LEADS".ljust(_LEFT_COLUMNS), "dim")]]
    left += [_pod(name, state, snapshot) for name, state in snapshot.pods.items()]
    right: list[Row] = [[Span("GROUP    LEADER  EPOCH          FOR", "dim")]]
    right += [_leader(leader, snapshot.at) for leader in snapshot.leaders.values()]
    height = max(len(left), len(right))
    left += [[Span(" " * _LEFT_COLUMNS)]] * (height - len(left))
    right += [[]] * (height - len(right))
    return [[*a, *b] for a, b in zip(left, right, strict=True)]


def _pod(name: str, state: str, snapshot: Snapshot) -> Row:
    leads = ", ".join(leader.group for leader in snapshot.leaders.values() if leader.pod == name)
    text = f" {name:<7} "
    rest = f" {leads}".ljust(_LEFT_COLUMNS - len(text) - 9)
    return [Span(text), Span(f"{state:<9}", _POD_STYLES.get(state, "plain")), Span(rest)]


def _leader(leader: GroupLeader, now: datetime) -> Row:
    if not leader.pod:
        last = f" (last epoch {leader.epoch})" if leader.epoch else ""
        return [Span(f"{leader.group:<8} "), Span(f"none{last}", "bad")]
    age = (now - (leader.since or now)).total_seconds()
    style = "leader" if timedelta(seconds=age) < _RECENT else "plain"
    return [
        Span(f"{leader.group:<8} "),
        Span(f"{leader.pod:<7} {leader.epoch:<14} {age:.0f} s", style),
    ]


def _schedules_and_singleton(snapshot: Snapshot) -> list[Row]:
    rows: list[Row] = [[Span(" NAME         GROUP    SCHEDULE   NEXT    LAST RUN", "dim")]]
    rows += [_schedule(schedule, snapshot) for schedule in snapshot.schedules]
    pod = snapshot.leaders.get(DEFAULT, GroupLeader(DEFAULT)).pod
    text = f"count {snapshot.count}" + (f" on {pod}" if pod else ", waiting for a leader")
    style = "plain" if pod else "bad"
    rows.append(
        [Span(f" {COORDINATOR:<12} {DEFAULT:<8} {'always':<10} {'':<7} "), Span(text, style)]
    )
    jobs = snapshot.jobs
    rescued = f", {jobs.rescued} rescued" if jobs.rescued else ""
    text = f"{jobs.succeeded} of {jobs.submitted} done, {jobs.running} running{rescued}"
    rows.append([Span(f" {RECEIPT:<12} {'':<8} {'job':<10} {'any pod':<7} "), Span(text)])
    return rows


def _schedule(schedule: Schedule, snapshot: Snapshot) -> Row:
    due = ""
    if schedule.next_at is not None:
        due = _due_in((schedule.next_at - snapshot.at).total_seconds())
    head = f" {schedule.name:<12} {schedule.group:<8} {schedule.every:<10} {due:<7} "
    run = snapshot.latest(schedule.name)
    return [Span(head), *([_last_run(run)] if run else [Span("no run yet", "dim")])]


def _due_in(seconds: float) -> str:
    if seconds < 0:
        return "due"
    return f"in {seconds:.0f}s" if seconds < 60 else f"in {seconds / 60:.0f}m"


def _last_run(run: Run) -> Span:
    if run.name == ORDER_FLOW and run.outcome != "failed":
        return _order(run)
    if run.outcome == "succeeded":
        attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
        late = "warn" if run.late_seconds >= LATE_SECONDS else "good"
        return Span(f"ok on {run.pod}{attempt}, {lateness(run.late_seconds)}", late)
    if run.outcome == "skipped":
        return Span(f"skipped: {run.reason}", "warn")
    if run.outcome == "failed" or run.failures:
        return Span(f"attempt {run.failures} failed: {visible(run.error)}", "bad")
    return Span(f"{run.state} on {run.pod}" if run.pod else run.state)


def _order(run: Run) -> Span:
    done = round(run.progress * len(ORDER_STEPS))
    bar = f"[{'#' * done}{'.' * (len(ORDER_STEPS) - done)}]"
    attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
    if run.ended:
        return Span(f"{bar} done on {run.pod}{attempt}", "good")
    return Span(f"{bar} {run.step or run.state} on {run.pod}{attempt}", "warn")


def _event(event: Event, now: datetime) -> Row:
    old = now - event.at > _RECENT and event.style == "plain"
    return [
        Span(f" {event.at:%H:%M:%S}.{event.at.microsecond // 100_000} ", "dim"),
        Span(event.text, "dim" if old else event.style),
    ]


def _paint(row: Row, columns: int, colour: bool) -> str:
    parts, left = [], columns
    for span in row:
        text = visible(span.text)[:left]
        left -= len(text)
        code = _STYLES[span.style] if colour else ""
        parts.append(f"\x1b[{code}m{text}\x1b[0m" if code and text else text)
    return "".join(parts)
