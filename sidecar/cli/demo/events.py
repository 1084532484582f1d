"""What happened between two snapshots, told as lines. Pure.

Guarantees: one line for each change of leader, each failed attempt, each step of an order and each
end of a run that the two snapshots tell apart; the same snapshot twice tells nothing.
"""

from collections.abc import Iterator

from sidecar.cli.demo.words import COORDINATOR, ORDER_FLOW, ORDER_STEPS, Line, Run, Seat, Snapshot
from sidecar.logs import visible

LATE_SECONDS = 1.0  # later than this is worth an explanation
_ERROR_MAX = 60


def happened(before: Snapshot, after: Snapshot) -> list[Line]:
    """The lines, in the order in which a person would tell them."""
    lines = [
        *_leaders(before, after),
        *_coordinator(before, after),
    ]
    known = {run.run_id: run for run in before.runs}
    for run in reversed(after.runs):  # the oldest first
        lines += (
            Line(after.at, tone, text) for tone, text in _run(known.get(run.run_id), run, after)
        )
    return lines


def _leaders(before: Snapshot, after: Snapshot) -> Iterator[Line]:
    for group, seat in after.seats.items():
        was = before.seats.get(group, Seat(group))
        if seat.pod and seat.epoch != was.epoch:
            at = seat.since or after.at
            yield Line(at, "good", f"{seat.pod} leads {group}, epoch {seat.epoch}")


def _coordinator(before: Snapshot, after: Snapshot) -> Iterator[Line]:
    """A line when the singleton counts in a new place; not for every count."""
    if after.counted_on == before.counted_on:
        return
    if before.counted_on:
        text = f"{COORDINATOR} goes on at {after.count} on {after.counted_on}, after"
        yield Line(after.at, "good", f"{text} {before.count} on {before.counted_on}")
    else:
        yield Line(after.at, "good", f"{COORDINATOR} counts on {after.counted_on}")


def _run(was: Run | None, run: Run, now: Snapshot) -> Iterator[tuple[str, str]]:
    if run.kind == "singleton" or (was and was.ended):
        return
    attempt_was, failures_was, step_was, epoch_was = (
        (was.attempt, was.failures, was.step, was.epoch) if was else (0, 0, "", run.epoch)
    )
    moved = run.attempt > attempt_was > 0 and run.epoch != epoch_was
    if moved:
        yield "warn", f"{titled(run)} delivered again on {run.pod}, attempt {run.attempt}"
    elif run.error and run.failures > failures_was:
        yield "bad", f"{titled(run)} attempt {run.failures} failed{_again(run, now)}"
    if run.name == ORDER_FLOW and run.step != step_was and run.step:
        steps = f"{run.steps_done}/{len(ORDER_STEPS)}"
        yield "plain", f"{titled(run)} {run.step} done on {run.pod} ({steps})"
    if run.ended:
        yield _end(run)


def _again(run: Run, now: Snapshot) -> str:
    why = visible(run.error)[:_ERROR_MAX]
    if run.next_attempt_at is None:
        return f": {why}"
    wait = max(0.0, (run.next_attempt_at - now.at).total_seconds())
    return f", again in {wait:.1f} s: {why}"


def _end(run: Run) -> tuple[str, str]:
    if run.outcome == "skipped":
        ticks = f"{run.ticks} ticks" if run.ticks > 1 else "tick"
        return "warn", f"{titled(run)} {ticks} skipped: {run.reason}"
    if run.outcome == "failed":
        return "bad", f"{titled(run)} failed for good: {visible(run.error)[:_ERROR_MAX]}"
    attempts = f" at attempt {run.attempt}" if run.attempt > 1 else ""
    text = f"{titled(run)} succeeded on {run.pod}{attempts}"
    if run.kind == "schedule":
        text += f", {lateness(run.late_seconds)}"
    if run.kind == "schedule" and run.late_seconds >= LATE_SECONDS:
        return "warn", f"{text}: not lost"
    return "good" if attempts else "plain", text


def titled(run: Run) -> str:
    """The run's name, with what tells it apart from its like."""
    if run.kind == "trigger":
        return f"{run.name} #{run.run_id}"
    return f"{run.name} {run.scheduled_at:%H:%M:%S}"


def lateness(seconds: float) -> str:
    """`12 ms late`, `4.1 s late`."""
    return f"{seconds * 1000:.0f} ms late" if seconds < LATE_SECONDS else f"{seconds:.1f} s late"
