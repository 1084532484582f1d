"""The judge of the leader's work: what must hold for schedules, runs and state.

- G3: nothing is written under an epoch once a newer one exists (told to the judge of terms).
- G4: a tick has one row and is never early (`_born`, `_begun`); a run moves only as `model/run.py`
  draws it, so that an outcome stands (`run_changed`); an answer is accepted for the live attempt
  alone (`accepted`), and the leader that reported it knows (`watch`). After every commit, the rows
  up to the watermark are the ticks of the schedule, one by one (`_check_ticks`).
- G5: every delivery of a run has the same key, an attempt of its own, and the steps kept before
  (`delivered`).
- G6: after every commit, the state that counts accepted answers equals their number
  (`_check_state`).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from sidecar.model.run import Outcome, Run, RunKind, RunRef, RunState, idempotency_key
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.stored_schedule import StoredSchedule
from tests.simulation.tables import CLUSTER, RunRow, Segment, Tables
from tests.simulation.world import World

_QUEUED, _RUNNING = RunState.QUEUED, RunState.RUNNING
_WAITING, _ENDED = RunState.WAITING, RunState.ENDED
_MOVES = {
    _QUEUED: {_RUNNING, _ENDED},
    _RUNNING: {_RUNNING, _WAITING, _ENDED},  # the same again: asked to end
    _WAITING: {_RUNNING, _ENDED},
    _ENDED: {_QUEUED},  # Retry
}
_HEARD_SECONDS = 10.0
_RETRIES = timedelta(seconds=20)


def _is_moved(before: RunRow, after: RunRow) -> bool:
    """To the group of its schedule, while no leader has it."""
    return before.state in (_QUEUED, _WAITING) and after == replace(before, group_id=after.group_id)


class WorkJudge:
    """`written` is asked about each commit under a term; `leads` says whether a term goes on."""

    def __init__(
        self,
        world: World,
        written: Callable[[int, int], None],
        leads: Callable[[int], bool],
    ) -> None:
        self.tables: Tables
        self.deliveries = 0
        self.completions = 0
        self.redeliveries = 0
        self._world = world
        self._written = written
        self._leads = leads
        self._delivered: dict[tuple[str, int], RunRef] = {}  # by key and attempt
        self._steps: dict[int, dict[str, tuple[int, bytes]]] = {}  # acknowledged, by run
        self._unheard: dict[RunRef, float] = {}
        self._rows: dict[int, list[RunRow]] = {}  # of ticks, by schedule
        self._moved: dict[int, datetime] = {}  # in this transaction: since when
        self._stated: set[str] = set()  # in this transaction: keys of states

    # ── the database ────────────────────────────────────────────────────────────────────────────

    def written(self, group_id: int, epoch: int) -> None:
        self._written(group_id, epoch)

    def accepted(self, run: RunRow, ref: RunRef, state_key: str) -> None:
        """An answer to this attempt is written, to the row that it finds."""
        self.completions += 1
        self._unheard[ref] = self._world.now
        self._stated.add(state_key)
        if (run.state, run.attempt, run.epoch) != (_RUNNING, ref.attempt, ref.epoch):
            self._world.violated(f"G4: the answer to {ref} is accepted for {run}")

    def schedule_changed(self, before: StoredSchedule, after: StoredSchedule) -> None:
        since = self._moved.get(after.id, before.watermark)
        self._moved[after.id] = min(since, before.watermark, after.watermark)

    def committed(self) -> None:
        """A transaction has ended: what belongs together is there together."""
        for number, since in self._moved.items():
            self._check_ticks(number, since)
        for key in self._stated:
            self._check_state(key)
        self._moved.clear()
        self._stated.clear()

    def run_changed(self, before: RunRow | None, after: RunRow, now: datetime) -> None:
        self._world.note("run", id=after.id, state=after.state.value, attempt=after.attempt)
        if before is None:
            self._born(after, now)
            return
        legal = after.state in _MOVES[before.state] or _is_moved(before, after)
        if before.state is _ENDED:
            legal = legal and before.outcome is Outcome.FAILED and after.lives == before.lives + 1
        if not legal:
            self._world.violated(f"G4: {before} became {after}")
        if after.state is _RUNNING and before.state is not _RUNNING:
            self._begun(before, after, now)

    def _born(self, run: RunRow, now: datetime) -> None:
        if run.kind is not RunKind.SCHEDULE:
            return
        if (run.tick_last or run.tick) > now:
            self._world.violated(f"G4: early: {run.name} {run.tick} at {now}")
        key = (run.name, run.tick)
        self._rows.setdefault(run.schedule_id, []).append(run)
        births = self.tables.births.get(key, 0)
        self.tables.put(self.tables.births, key, births + 1)
        if births:
            self._world.violated(f"G4: a second row for {run.name} {run.tick}")

    def _begun(self, before: RunRow, after: RunRow, now: datetime) -> None:
        if after.attempt != before.attempt + 1:
            self._world.violated(f"G5: attempt {after.attempt} follows {before.attempt}")
        if after.attempt == 1 and max(before.tick, before.due_at) > now:
            self._world.violated(f"G4: early: {before.name} {before.tick} begins at {now}")

    def rewound(self) -> None:
        """A failover lost writes: what they said never was."""
        runs = self.tables.runs
        self._delivered = {
            (key, attempt): ref
            for (key, attempt), ref in self._delivered.items()
            if (run := runs.get(ref.run_id)) and key == _key(run) and attempt <= run.attempt
        }
        self._steps.clear()
        self._unheard.clear()
        self._rows = {
            number: [run for run in rows if run.id in runs and _key(runs[run.id]) == _key(run)]
            for number, rows in self._rows.items()
        }

    # ── the apps ────────────────────────────────────────────────────────────────────────────────

    def delivered(self, claimed: Run) -> None:
        ref = claimed.ref
        run = self.tables.runs.get(ref.run_id)
        lost = run is None or _key(run) != claimed.idempotency_key or run.attempt < ref.attempt
        if lost or (run and run.attempt == ref.attempt and run.epoch != ref.epoch):
            return  # A failover lost the claim that this came from.
        self.deliveries += 1
        self.redeliveries += ref.attempt > 1
        place = (claimed.idempotency_key, ref.attempt)
        if place in self._delivered:
            self._world.violated(f"G5: {place} is delivered again")
        self._delivered[place] = ref
        steps = {c.step: c.value for c in claimed.checkpoints}
        for step, (attempt, value) in self._steps.get(ref.run_id, {}).items():
            if attempt < ref.attempt and steps.get(step) != value:
                self._world.violated(f"G5: run {ref.run_id} comes without its step {step!r}")

    def step_kept(self, ref: RunRef, step: str, value: bytes) -> None:
        """The sidecar acknowledged a checkpoint."""
        if any(c.step == step for c in self.tables.checkpoints.get(ref.run_id, ())):
            self._steps.setdefault(ref.run_id, {})[step] = (ref.attempt, value)

    # ── the sidecars ────────────────────────────────────────────────────────────────────────────

    def recorded(self, completion: Completion, recorded: Recorded) -> None:
        self._unheard.pop(completion.run.ref, None)

    # ── now and then ────────────────────────────────────────────────────────────────────────────

    def watch(self) -> None:
        for ref, since in [*self._unheard.items()]:
            if self._world.now - since > _HEARD_SECONDS:
                del self._unheard[ref]
                if self._leads(ref.epoch):
                    self._world.violated(f"G4: {ref} was accepted, its leader takes it for late")

    def _check_state(self, key: str) -> None:
        state, count = self.tables.states.get(key, b"0"), self.tables.state_writes.get(key, 0)
        if self._counts(key) and int(state) != count:
            self._world.violated(f"G6: {key} is {state!r} after {count} accepted answers")

    def _counts(self, key: str) -> bool:
        """Executions that may overlap read the same number twice."""
        kind, name = key.split("-state:")
        return kind == "singleton" or self.tables.schedule(name).definition.overlap != "allow"

    # ── at rest ─────────────────────────────────────────────────────────────────────────────────

    def undone(self, until: datetime) -> list[str]:
        """What was due at `until` by the database's clock and has no outcome yet."""
        live = [
            run
            for run in self.tables.runs.values()
            if run.state is not _ENDED and run.kind is not RunKind.SINGLETON
        ]
        # The clock was set back while they waited for a retry; those behind them wait for them.
        far = [run for run in live if run.due_at > until + _RETRIES]
        turns = {run.name for run in far if self._counts(f"schedule-state:{run.name}")}
        found = [
            f"{run.name} {run.tick} {run.state.value} due {run.due_at}"
            for run in live
            if run.tick <= until and run not in far and run.name not in turns
        ]
        found += [
            f"{s.name} {s.next_tick} has no row"
            for s in self.tables.schedules.values()
            if s.next_due_at and s.next_due_at <= until
        ]
        return found

    def check_ticks(self) -> None:
        """Every tick up to the watermark has exactly one row, and every row is one of ticks."""
        for number, segments in self.tables.segments.items():
            self._check_ticks(number, segments[0].after)

    def _check_ticks(self, number: int, since: datetime) -> None:
        """The same, of one schedule and after `since`."""
        stored = self.tables.schedules[number]
        segments = self.tables.segments[number]
        wanted = [*_ticks(segments, since, stored.watermark)]
        rows = [r for r in self._rows.get(number, []) if (r.tick_last or r.tick) > since]
        # A backfill that is carried out after the timing was changed goes by the new one.
        extra = {r.tick for r in rows if r.backfill and r.tick <= segments[-1].after}
        found = sorted(_covered(wanted, [r for r in rows if r.tick not in extra - {*wanted}]))
        if wanted != found:
            missing = sorted(Counter(wanted) - Counter(found))
            many = sorted(Counter(found) - Counter(wanted))
            self._world.violated(
                f"G4: {stored.name}: without a row {missing[:3]}, too many {many[:3]}"
            )


def _key(run: RunRow) -> str:
    return idempotency_key(CLUSTER, run.kind, run.name, run.id, run.tick)


def _ticks(segments: tuple[Segment, ...], since: datetime, until: datetime) -> Iterator[datetime]:
    for segment in segments:
        yield from segment.timing.ticks(max(segment.after, since), segment.until or until)


def _covered(ticks: list[datetime], rows: list[RunRow]) -> Iterator[datetime]:
    """The ticks that the rows stand for; a row that counts wrongly stands for others, too."""
    for run in rows:
        if run.tick_last is None:
            yield run.tick
            continue
        inside = ticks[bisect_left(ticks, run.tick) : bisect_right(ticks, run.tick_last)]
        yield from inside
        yield from [run.tick] * abs(len(inside) - run.tick_count)
