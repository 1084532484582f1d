"""The events between two snapshots. Pure.

Guarantees: one event for each change of leader, each failed attempt, each step of an order and each
finished run that differs between the two snapshots; no event between equal snapshots.
"""

from collections.abc import Iterator

from devtools.demo.model import (
    COORDINATOR,
    ORDER_FLOW,
    ORDER_STEPS,
    Event,
    GroupLeader,
    Run,
    Snapshot,
)
from sidecar.logs import visible

LATE_SECONDS = 1.0  # a later start is marked
_ERROR_MAX = 60


def events_between(before: Snapshot, after: Snapshot) -> list[Event]:
    """The events: leaders first, then runs, oldest first."""
    events = [
        *_leaders(before, after),
        *_coordinator(before, after),
    ]
    known = {run.run_id: run for run in before.runs}
    for run in reversed(after.runs):
        events += (
            Event(after.at, style, text) for style, text in _run(known.get(run.run_id), run, after)
        )
    return events


def _leaders(before: Snapshot, after: Snapshot) -> Iterator[Event]:
    for group, leader in after.leaders.items():
        was = before.leaders.get(group, GroupLeader(group))
        if leader.pod and leader.epoch != was.epoch:
            at = leader.since or after.at
            yield Event(at, "good", f"{leader.pod} leads {group}, epoch {leader.epoch}")


def _coordinator(before: Snapshot, after: Snapshot) -> Iterator[Event]:
    """An event when the singleton counts on another pod; none for every count."""
    if after.counted_on == before.counted_on:
        return
    if before.counted_on:
        text = f"{COORDINATOR} resumed at {after.count} on {after.counted_on}, after"
        yield Event(after.at, "good", f"{text} {before.count} on {before.counted_on}")
    else:
        yield Event(after.at, "good", f"{COORDINATOR} is counting on {after.counted_on}")


def _run(was: Run | None, run: Run, now: Snapshot) -> Iterator[tuple[str, str]]:
    if run.kind == "singleton" or (was and was.ended):
        return
    attempt_was, failures_was, step_was, epoch_was = (
        (was.attempt, was.failures, was.step, was.epoch) if was else (0, 0, "", run.epoch)
    )
    moved = run.attempt > attempt_was > 0 and run.epoch != epoch_was
    if moved:
        yield "warn", f"{run_title(run)} redelivered to {run.pod}, attempt {run.attempt}"
    elif run.error and run.failures > failures_was:
        yield "bad", f"{run_title(run)} attempt {run.failures} failed{_retry(run, now)}"
    if run.name == ORDER_FLOW and run.step != step_was and run.step:
        steps = f"{run.steps_done}/{len(ORDER_STEPS)}"
        yield "plain", f"{run_title(run)} {run.step} done on {run.pod} ({steps})"
    if run.ended:
        yield _finished(run)


def _retry(run: Run, now: Snapshot) -> str:
    why = visible(run.error)[:_ERROR_MAX]
    if run.next_attempt_at is None:
        return f": {why}"
    wait = max(0.0, (run.next_attempt_at - now.at).total_seconds())
    return f", retry in {wait:.1f} s: {why}"


def _finished(run: Run) -> tuple[str, str]:
    if run.outcome == "skipped":
        ticks = f"{run.ticks} ticks" if run.ticks > 1 else "tick"
        return "warn", f"{run_title(run)} {ticks} skipped: {run.reason}"
    if run.outcome == "failed":
        return "bad", f"{run_title(run)} failed permanently: {visible(run.error)[:_ERROR_MAX]}"
    attempts = f" at attempt {run.attempt}" if run.attempt > 1 else ""
    text = f"{run_title(run)} succeeded on {run.pod}{attempts}"
    if run.kind == "schedule":
        text += f", {lateness(run.late_seconds)}"
    if run.kind == "schedule" and run.late_seconds >= LATE_SECONDS:
        return "warn", f"{text}, but not lost"
    return "good" if attempts else "plain", text


def run_title(run: Run) -> str:
    """The run's name, with its id if it was triggered, else its scheduled time."""
    if run.kind == "trigger":
        return f"{run.name} #{run.run_id}"
    return f"{run.name} {run.scheduled_at:%H:%M:%S}"


def lateness(seconds: float) -> str:
    """`12 ms late`, `4.1 s late`."""
    return f"{seconds * 1000:.0f} ms late" if seconds < LATE_SECONDS else f"{seconds:.1f} s late"
