"""The dead man's switch of what this runner leads (G10).

Per led group: reads the vitals of its singletons and schedules, judges them every second by the
rules of `model/health.py`, and writes their heartbeats every 30 s as long as the lock is held and
the app answers. It asks the election to step down when staleness arose in its own term and another
healthy runner is there.

Guarantees: reading and writing have time limits of their own and never delay judging; while
Postgres is silent the last known vitals age, so silence turns red and never green. A step of the
database's clock makes nobody step down, and no heartbeat old.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.health import gauges
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.errors import StoreUnavailable
from sidecar.model.health import (
    BackOff,
    EntityKey,
    Judgement,
    Reading,
    Vitals,
    Watch,
    heartbeat_due,
    judged,
    oldest_beat,
    staleness,
)
from sidecar.model.ledger import Recorded, Report
from sidecar.model.run import Outcome
from sidecar.model.term import Tenure, Term

log = structlog.get_logger()

POLL_SECONDS_MAX = 5.0
JUDGE_SECONDS = 1.0
OBSERVE_SECONDS = 30.0
CLOCK_STEP_SECONDS = 0.5  # less is drift
OBSERVED_MAX = 1_000
_OFTEN_READ_MAX = 500  # more entities than that are read seldom, while all is well:
_SELDOM_SECONDS = 120.0


class VitalsStore(Protocol):
    """Where heartbeats are kept. Each call ends within seconds or raises StoreUnavailable."""

    async def read(self, groups: Sequence[str], limit: int = ...) -> Reading: ...

    async def beat(self, term: Term, older_than_seconds: float) -> bool:
        """Write the heartbeats that are due; False: the term is over."""
        ...


@dataclass(slots=True)
class _Led:
    """What is known of one led group."""

    tenure: Tenure
    reading: Reading
    read_at: float  # boottime of the answer
    judgement: Judgement
    outdated: asyncio.Event = field(default_factory=asyncio.Event)  # read again before it is time
    watched: bool = True  # false: the term is being wound up, its last verdict stands
    changed: bool = True  # some were added, changed, removed, or not yet read after our first beat
    known_at: float = 0.0  # boottime when all heartbeats were read, or written, last
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    successes: dict[EntityKey, datetime] = field(default_factory=dict)  # not yet read

    def now(self, clock: float) -> datetime:
        """The database's time, carried on by our own clock."""
        return self.reading.now + timedelta(seconds=clock - self.read_at)


class DeadMansSwitch:
    """Watches what is led here; knows what is led elsewhere."""

    def __init__(
        self,
        store: VitalsStore,
        *,
        heartbeat_seconds: float,
        stale_after_seconds: float,
        app_answers: Callable[[], bool],
        others_ready: Callable[[], bool],
        step_down: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._stale_after_seconds = stale_after_seconds
        self._app_answers = app_answers
        self._others_ready = others_ready
        self._step_down = step_down
        self._clock = clock
        self._poll_seconds = min(POLL_SECONDS_MAX, heartbeat_seconds / 4)
        self._led: dict[str, _Led] = {}
        self._back_offs: dict[str, BackOff] = {}
        self._observed: Reading | None = None
        self._forgotten = asyncio.Event()

    async def watch(self, tenure: Tenure) -> None:
        """Watch the group for the length of a term; returns when the term is being wound up.

        Whoever hands over because something is stale stays red until that is done.
        """
        group = tenure.term.group
        self._forget(group)
        tasks = [
            asyncio.create_task(self._refresh(tenure), name=f"health.vitals.{group}"),
            asyncio.create_task(self._judge(tenure), name=f"health.judge.{group}"),
            asyncio.create_task(tenure.draining.wait(), name=f"health.drain.{group}"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if led := self._led.get(group):
                led.watched = False
        except BaseException:
            self._forget(group)
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def changed(self, group: str) -> None:
        """Schedules of this group were added, changed or removed: see to it at the next look."""
        if led := self._led.get(group):
            led.changed = True

    def recorded(self, report: Report, recorded: Recorded) -> None:
        """An attempt led here is over: its success need not be read to be known."""
        delivery, led = report.delivery, self._led.get(report.delivery.group)
        if led and recorded.outcome is Outcome.SUCCEEDED and recorded.finished_at:
            led.successes[delivery.kind.entity_type, delivery.name] = recorded.finished_at

    async def observe(self, groups: Sequence[str]) -> None:
        """For /health: what is led elsewhere, now and then, and when a term has ended here."""
        while True:
            self._forgotten.clear()
            try:
                if elsewhere := [group for group in groups if group not in self._led]:
                    self._observed = await self._store.read(elsewhere, OBSERVED_MAX)
            except StoreUnavailable as error:
                log.debug("vitals_unknown", error=error)
            except Exception:
                log.exception("vitals_failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(OBSERVE_SECONDS):
                    await self._forgotten.wait()

    def stale(self) -> list[str]:
        """Why what is led here counts as stale; one line each."""
        for group, led in list(self._led.items()):
            if not led.watched and not led.tenure.trusted:
                self._forget(group)
        clock = self._clock()
        return [
            each.reason(led.now(clock))
            for led in self._led.values()
            for each in led.judgement.stale
        ]

    def stale_reasons(self) -> dict[EntityKey, str]:
        """Why each stale entity that is known counts as stale; what is fresh is not in it.

        Made anew with each call: whoever asks for many asks once.
        """
        found, clock = {}, self._clock()
        for vitals, seen_at in self._elsewhere():
            if stale := staleness(vitals, seen_at, self._stale_after_seconds):
                found[vitals.key] = stale.why(seen_at)
        for led in self._led.values():
            now = led.now(clock)
            found.update((each.vitals.key, each.why(now)) for each in led.judgement.stale)
        return found

    def entities(self) -> Iterator[tuple[Vitals, str, bool]]:
        """Everything known: its vitals, why it is stale if it is, and whether it is led here."""
        stale = self.stale_reasons()
        for led in self._led.values():
            for vitals in led.reading.entities:
                yield _as_of(vitals, led.reading.beaten_at), stale.get(vitals.key, ""), True
        for vitals, _ in self._elsewhere():
            yield vitals, stale.get(vitals.key, ""), False

    def _elsewhere(self) -> Iterator[tuple[Vitals, datetime]]:
        """What was led elsewhere when it was seen, and when that was."""
        if observed := self._observed:
            for vitals in observed.entities:
                if vitals.group not in self._led:
                    yield vitals, observed.now

    async def _refresh(self, tenure: Tenure) -> None:
        """Read, so that what is inherited shows at once; then write what is due and read again."""
        while True:
            try:
                if tenure.term.group not in self._led:
                    await self._read(tenure)
                await self._beat(tenure)
                if self._must_read(self._led.get(tenure.term.group)):
                    await self._read(tenure)
            except Exception:
                # The watchman's own mistake ends neither the watch nor the term: unwritten
                # heartbeats turn red by themselves.
                log.exception("vitals_failed", group=tenure.term.group)
            await self._pause(self._led.get(tenure.term.group))

    async def _pause(self, led: _Led | None) -> None:
        if led is None:
            await asyncio.sleep(JUDGE_SECONDS)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause_seconds(led)):
                await led.outdated.wait()
        led.outdated.clear()

    def _must_read(self, led: _Led | None) -> bool:
        """Reading thousands costs; what is calm turns red by time alone, which needs no reading."""
        if led is None or not _many(led) or led.changed or led.judgement.stale:
            return True
        now, holds_until = led.now(self._clock()), led.judgement.holds_until
        if holds_until is not None and now > holds_until:
            return True
        return self._clock() - led.read_at >= _SELDOM_SECONDS

    def _pause_seconds(self, led: _Led) -> float:
        if not _many(led):
            return self._poll_seconds
        return self._poll_seconds * 2 if led.judgement.stale else self._heartbeat_seconds * 5 / 6

    def _beat_seconds(self, led: _Led) -> float:
        """Where looks are rare, a heartbeat that one of them could not write must not get stale."""
        return self._heartbeat_seconds * (2 / 3 if _many(led) else 1)

    async def _read(self, tenure: Tenure) -> None:
        group, asked = tenure.term.group, self._clock()
        try:
            reading = await self._store.read([group])
        except StoreUnavailable as error:
            log.warning("vitals_unreadable", group=group, error=error)
            return
        led, answered = self._led.get(group), self._clock()
        before: tuple[Vitals, ...] = ()
        ahead = reading.now - led.now(answered) if led else timedelta()
        if led is None:
            nothing = Judgement(Watch(taken_at=reading.now))
            led = self._led[group] = _Led(tenure, reading, answered, nothing)
            led.known_at = led.read_at
        else:
            before = led.reading.entities
            led.successes = _unread(led.successes, reading)
            led.reading, led.read_at, led.changed = reading, answered, False
            led.known_at = led.read_at
        if led.clock.learn(reading.now, asked=asked, answered=led.read_at) > CLOCK_STEP_SECONDS:
            # What this made old is like what was inherited: nobody had a chance to do better.
            log.info("database_clock_set", group=group, now=reading.now.isoformat())
            led.judgement = replace(led.judgement, watch=Watch(taken_at=reading.now))
            if ahead > timedelta():  # a step makes no heartbeat old: we write them ourselves
                led.reading = replace(reading, beaten_at=oldest_beat(reading, ahead))
        self._look(led)
        gauges.delete_gone(before, reading.entities)  # after the look, which still speaks of them
        known = set(before)
        gauges.publish((each for each in reading.entities if each not in known), led.judgement)

    async def _beat(self, tenure: Tenure) -> bool:
        """Were heartbeats written? Only for what is shown to be alive: lock held, app answering."""
        led = self._led.get(tenure.term.group)
        if led is None or not (tenure.trusted and self._app_answers()):
            return False
        now, seconds = led.now(self._clock()), self._beat_seconds(led)
        due = (heartbeat_due(vitals.heartbeat_at, now, seconds) for vitals in led.reading.entities)
        if not any(due):
            return False
        try:
            stands = await self._store.beat(tenure.term, seconds)
        except StoreUnavailable as error:
            gauges.heartbeat_failed(tenure.term, error)
            return False
        if not stands:
            metrics.FENCED_WRITES.labels("heartbeat").inc()
            tenure.fenced()
        elif _many(led) and self._clock() - led.known_at >= seconds:
            self._all_written(led, now)
        return stands

    def _all_written(self, led: _Led, now: datetime) -> None:
        """Nothing was written for so long that everything was due: no need to read it back."""
        led.reading, led.known_at = replace(led.reading, beaten_at=now), self._clock()
        gauges.beaten(led.reading.entities, now)
        self._look(led)

    async def _judge(self, tenure: Tenure) -> None:
        """Time alone makes things stale, so look again even if nothing was read."""
        while True:
            await asyncio.sleep(JUDGE_SECONDS)
            led = self._led.get(tenure.term.group)
            if led is None:
                continue
            holds_until = led.judgement.holds_until
            if holds_until is not None and led.now(self._clock()) > holds_until:
                self._look(led)
                led.outdated.set()  # a success that we have not read yet is no cause for alarm
            self._consider_stepping_down(led)

    def _look(self, led: _Led) -> None:
        before = {each.vitals.key for each in led.judgement.stale}
        now = led.now(self._clock())
        reading = replace(led.reading, successes=led.successes)
        led.judgement = judged(led.judgement.watch, reading, now, self._stale_after_seconds)
        gauges.report_changes(before, led.judgement.stale, now)

    def _consider_stepping_down(self, led: _Led) -> None:
        group, clock = led.tenure.term.group, self._clock()
        back_off = self._back_offs.get(group, BackOff())
        if not led.judgement.stale:
            self._back_offs[group] = back_off.calmed(clock)
            return
        if not led.judgement.own or not back_off.allows(clock) or not self._others_ready():
            return
        self._back_offs[group] = back_off.stepped_down(clock)
        names = [each.vitals.name for each in led.judgement.own[:10]]
        log.warning("stepping_down_stale", group=group, epoch=led.tenure.term.epoch, stale=names)
        self._step_down(group)

    def _forget(self, group: str) -> None:
        led = self._led.pop(group, None)
        if led is None:
            return
        self._forgotten.set()
        gauges.forget(led.reading.entities)


def _as_of(vitals: Vitals, beaten_at: datetime | None) -> Vitals:
    if beaten_at is None or (vitals.heartbeat_at and vitals.heartbeat_at >= beaten_at):
        return vitals
    return replace(vitals, heartbeat_at=beaten_at)


def _unread(successes: Mapping[EntityKey, datetime], reading: Reading) -> dict[EntityKey, datetime]:
    read = {each.key: each.last_success_at for each in reading.entities if each.key in successes}
    return {key: successes[key] for key, at in read.items() if at is None or at < successes[key]}


def _many(led: _Led) -> bool:
    return len(led.reading.entities) > _OFTEN_READ_MAX
