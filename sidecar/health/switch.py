"""The dead man's switch of what this runner leads (G10).

Per led group: reads the vitals of its singletons and schedules, judges them every second by the
rules of `model/health.py`, and writes their heartbeats every 30 s while the lock is held and the
app answers. It makes the election step down when staleness arose in its own term and another
healthy runner exists.

Guarantees: reading and writing have their own time limits and never delay judging; while Postgres
does not answer the last known vitals age, so an outage turns red and never green. A runner that
hands over because Postgres does not answer stays red until Postgres answers. A step of the
database's clock makes no runner step down and no heartbeat old.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, islice
from math import inf
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.execution.authority import Authority
from sidecar.health import gauges
from sidecar.health.led_group import LedGroup, unread
from sidecar.model.errors import StoreUnavailable
from sidecar.model.health import (
    BackOff,
    EntityKey,
    Judgement,
    Stale,
    Vitals,
    VitalsReading,
    Watch,
    heartbeat_due,
    judging,
    oldest_beat,
    staleness,
)
from sidecar.model.run import Outcome
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.term import LossReason, Term
from sidecar.slices import finished

log = structlog.get_logger()

POLL_SECONDS_MAX = 5.0
JUDGE_SECONDS = 1.0
OBSERVE_SECONDS = 30.0
CLOCK_STEP_SECONDS = 0.5  # less is drift
OBSERVED_MAX = 1_000
# Groups above SMALL_GROUP_MAX are read less often while nothing is stale, and judged less often.
_LARGE_GROUP_READ_SECONDS = 120.0
_LARGE_GROUP_JUDGE_SECONDS = 3.0
_WORKING_SECONDS = 5.0  # since a success: the app works
_LONG_SECONDS = 86_400.0


class VitalsStore(Protocol):
    """Where heartbeats are kept. Each call ends within seconds or raises StoreUnavailable."""

    async def read(self, groups: Sequence[str], limit: int = ...) -> VitalsReading: ...

    async def beat(self, term: Term, older_than_seconds: float) -> bool:
        """Write the heartbeats that are due; False: the term is over."""
        ...


class Peers(Protocol):
    @property
    def others_ready(self) -> bool:
        """Whether another healthy runner could lead."""


class DeadMansSwitch:
    """Watches the groups led here; observes those led elsewhere."""

    def __init__(
        self,
        store: VitalsStore,
        *,
        heartbeat_seconds: float,
        stale_after_seconds: float,
        app_answers: Callable[[], bool],
        peers: Peers,
        clock: Callable[[], float],
        answering_seconds: Callable[[], float] = lambda: inf,
        overloaded: Callable[[str], bool] = lambda group: False,
    ) -> None:
        """`answering_seconds`: for how long Postgres has answered all our calls. `overloaded`:
        whether more is due in a group than can be run."""
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._stale_after_seconds = stale_after_seconds
        self._app_answers = app_answers
        self._peers = peers
        self._clock = clock
        self._answering_seconds = answering_seconds
        self._overloaded = overloaded
        self._poll_seconds = min(POLL_SECONDS_MAX, heartbeat_seconds / 4)
        self._led: dict[str, LedGroup] = {}
        self._back_offs: dict[str, BackOff] = {}
        self._handed_over: dict[str, list[str]] = {}  # while Postgres did not answer: the reasons
        self._observed: VitalsReading | None = None
        self._forgotten = asyncio.Event()

    async def watch(self, authority: Authority) -> None:
        """Watch the group during a term; returns when the term drains.

        A runner that hands over because of a stale entity stays red until the hand-over is done.
        """
        group = authority.term.group
        self._forget(group)
        self._handed_over.pop(group, None)
        tasks = [
            asyncio.create_task(self._refresh(authority), name=f"health.vitals.{group}"),
            asyncio.create_task(self._judge(authority), name=f"health.judge.{group}"),
            asyncio.create_task(authority.draining.wait(), name=f"health.drain.{group}"),
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
        """Schedules of this group were added, changed or removed: read them next time."""
        if led := self._led.get(group):
            led.changed = True

    def recorded(self, completion: Completion, recorded: Recorded) -> None:
        """An attempt led here is over: remember its success until it is read from Postgres."""
        run, led = completion.run, self._led.get(completion.run.group)
        if led and recorded.outcome is Outcome.SUCCEEDED and recorded.finished_at:
            led.successes[run.kind.entity_type, run.name] = recorded.finished_at
            led.success_seen_at = self._clock()

    async def observe(self, groups: Sequence[str]) -> None:
        """For /health: read what is led elsewhere, regularly and after a term ended here."""
        while True:
            self._forgotten.clear()
            try:
                if elsewhere := [group for group in groups if group not in self._led]:
                    self._observed = await self._store.read(elsewhere, OBSERVED_MAX)
                    self._handed_over.clear()
            except StoreUnavailable as error:
                log.debug("vitals_unreadable", error=error)
            except Exception:
                log.exception("vitals_failed")
            with suppress(TimeoutError):
                pause = self._poll_seconds if self._handed_over else OBSERVE_SECONDS
                async with asyncio.timeout(pause):
                    await self._forgotten.wait()

    @property
    def stale_count(self) -> int:
        """How many reasons `stale` has."""
        self._forget_untrusted()
        handed_over = (why for group, why in self._handed_over.items() if group not in self._led)
        return sum(len(led.judgement.stale) for led in self._led.values()) + sum(
            len(why) for why in handed_over
        )

    def stale(self, most: int | None = None) -> list[str]:
        """The reasons why entities led here are stale, at most so many of them."""
        self._forget_untrusted()
        clock = self._clock()
        stale = (
            each.reason(led.now(clock))
            for led in self._led.values()
            for each in led.judgement.stale
        )
        handed_over = (why for group, why in self._handed_over.items() if group not in self._led)
        return list(islice(chain(stale, chain.from_iterable(handed_over)), most))

    def _forget_untrusted(self) -> None:
        for group, led in list(self._led.items()):
            if not led.watched and not led.authority.trusted:
                self._forget(group)

    def stale_reasons(self) -> dict[EntityKey, str]:
        """The reason for each stale entity; computed by each call, so call it once for many."""
        return {key: each.why(now) for key, (each, now) in self._all_stale().items()}

    def _all_stale(self) -> dict[EntityKey, tuple[Stale, datetime]]:
        found, clock = {}, self._clock()
        for vitals, seen_at in self._elsewhere():
            if stale := staleness(vitals, seen_at, self._stale_after_seconds):
                found[vitals.key] = stale, seen_at
        for led in self._led.values():
            now = led.now(clock)
            found.update((each.vitals.key, (each, now)) for each in led.judgement.stale)
        return found

    def entities(self) -> Iterator[tuple[Vitals, str, bool]]:
        """All entities: their vitals, the reason if stale, and whether they are led here."""
        stale = self._all_stale()

        def why(vitals: Vitals) -> str:
            found = stale.get(vitals.key)
            return found[0].why(found[1]) if found else ""

        for led in self._led.values():
            for vitals in led.reading.entities:
                yield led.as_of_now(vitals), why(vitals), True
        for vitals, _ in self._elsewhere():
            yield vitals, why(vitals), False

    def _elsewhere(self) -> Iterator[tuple[Vitals, datetime]]:
        """The entities led elsewhere, and when they were read."""
        if observed := self._observed:
            for vitals in observed.entities:
                if vitals.group not in self._led:
                    yield vitals, observed.now

    async def _refresh(self, authority: Authority) -> None:
        """Read the vitals at once, then write due heartbeats and read again, until cancelled."""
        while True:
            try:
                if authority.term.group not in self._led:
                    await self._read(authority)
                await self._beat(authority)
                if self._must_read(self._led.get(authority.term.group)):
                    await self._read(authority)
            except Exception:
                # A bug of ours ends neither the watch nor the term: missing heartbeats turn red.
                log.exception("vitals_failed", group=authority.term.group)
            await self._pause(self._led.get(authority.term.group))

    async def _pause(self, led: LedGroup | None) -> None:
        if led is None:
            await asyncio.sleep(JUDGE_SECONDS)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause_seconds(led)):
                await led.outdated.wait()
        led.outdated.clear()

    def _must_read(self, led: LedGroup | None) -> bool:
        """Reading thousands is expensive; a healthy group turns stale by time, without a read."""
        if led is None or not led.is_large or led.changed:
            return True
        if self._clock() - led.read_at < self._poll_seconds * 2:
            return False
        if led.judgement.stale:
            return True
        now, holds_until = led.now(self._clock()), led.judgement.holds_until
        if holds_until is not None and now > holds_until:
            return True
        return self._clock() - led.read_at >= _LARGE_GROUP_READ_SECONDS

    def _pause_seconds(self, led: LedGroup) -> float:
        if not led.is_large:
            return self._poll_seconds
        return self._poll_seconds * 2 if led.judgement.stale else self._heartbeat_seconds * 5 / 6

    def _beat_seconds(self, led: LedGroup) -> float:
        """Shorter for large groups: one failed write must not make their heartbeats stale."""
        return self._heartbeat_seconds * (2 / 3 if led.is_large else 1)

    async def _read(self, authority: Authority) -> None:
        group, asked = authority.term.group, self._clock()
        try:
            reading = await self._store.read([group])
        except StoreUnavailable as error:
            log.warning("vitals_unreadable", group=group, error=error)
            self._remember_problem(group, error)
            return
        led, answered = self._led.get(group), self._clock()
        before: tuple[Vitals, ...] = ()
        ahead = reading.now - led.now(answered) if led else timedelta()
        if led is None:
            nothing = Judgement(Watch(taken_at=reading.now))
            led = self._led[group] = LedGroup(authority, reading, answered, nothing)
            led.known_at = led.read_at
        else:
            before = led.reading.entities
            led.successes = unread(led.successes, reading)
            led.reading, led.read_at, led.changed = reading, answered, False
            led.known_at, led.problem = led.read_at, ""
        if led.clock.learn(reading.now, asked=asked, answered=led.read_at) > CLOCK_STEP_SECONDS:
            # Judge what the step made old like inherited staleness: this runner did not cause it.
            log.info("database_clock_set", group=group, now=reading.now.isoformat())
            async with led.judging:
                led.judgement = replace(led.judgement, watch=Watch(taken_at=reading.now))
            if ahead > timedelta():  # a step makes no heartbeat old: this runner writes them
                led.reading = replace(reading, all_heartbeats_at=oldest_beat(reading, ahead))
        await self._judge_vitals(led)
        gauges.delete_gone(before, reading.entities)  # after judging, which reports them
        await gauges.publish(before, reading.entities, led.judgement)

    async def _beat(self, authority: Authority) -> bool:
        """Write due heartbeats while the lock is held and the app answers; returns whether."""
        led = self._led.get(authority.term.group)
        if led is None or not (authority.trusted and self._app_answers()):
            return False
        now, seconds = led.now(self._clock()), self._beat_seconds(led)
        due = (heartbeat_due(vitals.heartbeat_at, now, seconds) for vitals in led.reading.entities)
        if not any(due):
            return False
        try:
            accepted = await self._store.beat(authority.term, seconds)
        except StoreUnavailable as error:
            gauges.heartbeat_failed(authority.term, error)
            self._remember_problem(authority.term.group, error)
            return False
        if not accepted:
            metrics.FENCED_WRITES.labels("heartbeat").inc()
            authority.revoke(LossReason.FENCED)
        elif led.is_large and self._clock() - led.known_at >= seconds:
            await self._all_heartbeats_written(led, now)
        return accepted

    def _remember_problem(self, group: str, error: StoreUnavailable) -> None:
        if led := self._led.get(group):
            led.problem = str(error)

    async def _all_heartbeats_written(self, led: LedGroup, now: datetime) -> None:
        """All heartbeats were due and are written: no need to read them back."""
        led.reading, led.known_at = replace(led.reading, all_heartbeats_at=now), self._clock()
        await gauges.publish_heartbeats(led.reading.entities, now)
        await self._judge_vitals(led)

    async def _judge(self, authority: Authority) -> None:
        """Judge every second: entities turn stale by time, without a read."""
        while True:
            await asyncio.sleep(JUDGE_SECONDS)
            led = self._led.get(authority.term.group)
            if led is None:
                continue
            if self._must_judge(led):
                await self._judge_vitals(led)
                led.outdated.set()  # read now: there may be a success that we have not read yet
            self._consider_stepping_down(led)

    def _must_judge(self, led: LedGroup) -> bool:
        holds_until = led.judgement.holds_until
        if led.is_large and self._clock() - led.judged_at < _LARGE_GROUP_JUDGE_SECONDS:
            return False
        return holds_until is not None and led.now(self._clock()) > holds_until

    async def _judge_vitals(self, led: LedGroup) -> None:
        async with led.judging:
            now = led.now(self._clock())
            reading = replace(led.reading, successes=led.successes)
            answering = timedelta(seconds=min(self._answering_seconds(), _LONG_SECONDS))
            watch = replace(led.judgement.watch, answering_since=now - answering)
            judgement = await finished(judging(watch, reading, now, self._stale_after_seconds))
            before, led.judgement = {each.vitals.key for each in led.judgement.stale}, judgement
            led.judged_at = self._clock()
            if self._led.get(led.authority.term.group) is led:
                gauges.report_changes(before, judgement.stale, now)

    def _consider_stepping_down(self, led: LedGroup) -> None:
        group, clock = led.authority.term.group, self._clock()
        back_off = self._back_offs.get(group, BackOff())
        if not led.judgement.stale:
            self._back_offs[group] = back_off.calmed(clock)
            return
        if not led.judgement.own or not back_off.allows(clock) or not self._peers.others_ready:
            return
        if self._only_overloaded(led):
            return
        self._back_offs[group] = back_off.stepped_down(clock)
        names = [each.vitals.name for each in led.judgement.own[:10]]
        log.warning("stepping_down_stale", group=group, epoch=led.authority.term.epoch, stale=names)
        if led.problem:
            now, why = led.now(clock), f"group {group} was handed over: Postgres: {led.problem}"
            self._handed_over[group] = [*(each.reason(now) for each in led.judgement.own[:10]), why]
        led.authority.revoke(LossReason.STALE)

    def _only_overloaded(self, led: LedGroup) -> bool:
        """More is due than can be run, and runs succeed: another leader could not do better."""
        working = self._clock() - led.success_seen_at < _WORKING_SECONDS
        no_success = all(each.cause == "success" for each in led.judgement.own)
        return working and no_success and self._overloaded(led.authority.term.group)

    def _forget(self, group: str) -> None:
        led = self._led.pop(group, None)
        if led is None:
            return
        self._forgotten.set()
        gauges.forget(led.reading.entities)
