"""The plot: a cluster at work, its leader killed, a pod that comes back, a clean hand-over.

Each act waits for what it needs, not only for the clock; one that waits in vain ends the demo with
the last words of the pods.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path

from sidecar.adapters.clock import boottime
from sidecar.cli.demo.events import happened
from sidecar.cli.demo.observer import NobodyAnswers, Observer
from sidecar.cli.demo.pods import REPORT_SECONDS, STEP_SECONDS, Pod
from sidecar.cli.demo.show import Show
from sidecar.cli.demo.summary import Facts, Orders, Ticks, account
from sidecar.cli.demo.view import Page
from sidecar.cli.demo.words import (
    DEFAULT,
    FLAKY,
    GROUPS,
    ORDER_FLOW,
    ORDER_STEPS,
    REPORT,
    DemoFailed,
    Run,
    Snapshot,
    Takeover,
)

_LOOK_SECONDS = 0.2
_START_SECONDS = 60.0
_TAKEOVER_SECONDS = 20.0
_SETTLE_SECONDS = 8.0
_ORDERS_SECONDS = 30.0
_NAP_SECONDS = 0.05
_LAST_ACT_SECONDS = 3.0
_SHOW_SECONDS_MIN = 14.0
_CURTAIN_SECONDS = 2.0  # to look everything up and to stop the pods


class Timing:
    """When the acts begin: parts of the time that is left once the cluster is at work."""

    def __init__(self, seconds: float, began: float) -> None:
        self._seconds, self._began = seconds, began  # from the start of the command, monotonic
        self.at_work(began)

    def at_work(self, now: float) -> None:
        """The first act is over; the others share what is left, but each gets what it needs."""
        left = self._began + self._seconds - _CURTAIN_SECONDS - now
        self._start, self._length = now, max(_SHOW_SECONDS_MIN, left)

    @property
    def crash_at(self) -> float:
        return self._start + self._length / 3

    @property
    def comeback_at(self) -> float:
        return self._start + self._length * 0.55

    @property
    def hand_over_at(self) -> float:
        return self._start + self._length * 0.72

    @property
    def end_at(self) -> float:
        return self._start + self._length

    def clock(self, now: float) -> tuple[float, float]:
        """Seconds since the start of the command, and at its end."""
        elapsed = now - self._began
        return elapsed, max(elapsed, self.end_at + _CURTAIN_SECONDS - self._began)


class Story:
    """One performance. `play` returns the facts that the summary judges."""

    def __init__(self, pods: Sequence[Pod], show: Show, ledger: Path, timing: Timing) -> None:
        self._pods = {pod.name: pod for pod in pods}
        self._show, self._ledger, self._timing = show, ledger, timing
        self._observer = Observer(pods)
        self._snapshot = Snapshot(datetime.now(UTC), self._observer.pod_states())
        self._headline = f"{len(pods)} pods are starting: an app and a sidecar each"
        self._takeovers: list[Takeover] = []
        self._counts: list[int] = []
        self._order_numbers = count(1001)
        self._stalled_seconds = 0.0

    async def play(self) -> Facts:
        followers = [
            asyncio.create_task(self._observer.run(), name="demo.observer"),
            asyncio.create_task(self._follow(), name="demo.view"),
            asyncio.create_task(self._feel_stalls(), name="demo.stalls"),
        ]
        acts = asyncio.create_task(self._acts(), name="demo.acts")
        try:
            await asyncio.wait([acts, *followers], return_when=asyncio.FIRST_COMPLETED)
            for follower in followers:
                if follower.done():
                    follower.result()  # it ends only with an error
            return await acts
        finally:
            acts.cancel()
            for follower in followers:
                follower.cancel()
            await asyncio.gather(acts, *followers, return_exceptions=True)

    async def _acts(self) -> Facts:
        await self._start()
        await self._crash()
        await self._come_back()
        await self._hand_over()
        await self._until(self._timing.end_at)
        return await self._facts()

    # The acts.

    async def _start(self) -> None:
        self._act(self._headline)
        for pod in self._pods.values():
            pod.start()
        await self._wait(self._all_at_work, _START_SECONDS, "every group led, every pod answering")
        self._timing.at_work(time.monotonic())
        await self._order()
        self._headline = "one leader per group: it ticks and executes, the others stand by"

    async def _crash(self) -> None:
        await self._until(self._timing.crash_at - 2 * STEP_SECONDS)
        await self._middle_of_a_step()
        victim = await self._leader()
        self._counts.append(self._snapshot.count)
        self._act(f"SIGKILL: {victim.name} dies, app and sidecar, in the middle of an order")
        await self._change("crash", victim, victim.crash)
        await self._wait(
            lambda: self._snapshot.count > self._counts[0], _SETTLE_SECONDS, "the coordinator"
        )
        self._counts.append(self._snapshot.count)

    async def _come_back(self) -> None:
        await self._until(self._timing.comeback_at)
        for pod in self._pods.values():
            if not pod.running:
                self._act(f"{pod.name} is started again")
                pod.start()
                await self._wait(partial(self._stands_by, pod), _START_SECONDS, "a standby")
                self._act(f"{pod.name} is back, as a standby: nothing is interrupted")

    async def _hand_over(self) -> None:
        await self._until(self._timing.hand_over_at)
        with suppress(DemoFailed):  # a run that goes on is waited for by the drain as well
            await self._wait(lambda: not self._running(), _SETTLE_SECONDS, "a quiet moment")
        leader = await self._leader()
        self._act(f"SIGTERM: {leader.name} is asked to leave and hands over")
        await self._change("hand-over", leader, leader.leave)
        await leader.left()
        await self._order()
        await asyncio.sleep(_LAST_ACT_SECONDS)
        leader.start()

    async def _change(self, cause: str, pod: Pod, fault: Callable[[], None]) -> None:
        """Do it, and wait until every group that `pod` led is led by another."""
        led = [group for group in GROUPS if self._observer.seats[group].pod == pod.name]
        epochs = {group: self._observer.seats[group].epoch for group in led}
        at, stalled_seconds = datetime.now(UTC), self._stalled_seconds
        fault()
        for group in led:
            # Seen in the snapshot: then it has been told already, and in order.
            taken = partial(self._is_led_since, group, epochs[group])
            await self._wait(taken, _TAKEOVER_SECONDS, f"a new leader of {group}")
            seat = self._snapshot.seats[group]
            seconds = ((seat.since or at) - at).total_seconds()
            stalled = self._stalled_seconds - stalled_seconds
            self._takeovers.append(Takeover(cause, group, pod.name, seat.pod, seconds, stalled))
            self._act(f"{seat.pod} took over {group} {seconds:.2f} s after the {cause}")

    # What the acts are made of.

    def _act(self, text: str) -> None:
        self._headline = text
        self._show.tell("act", text)

    async def _order(self) -> int:
        number = f"A-{next(self._order_numbers)}"
        run_id = await self._observer.trigger(ORDER_FLOW, {"order": number})
        self._show.tell("plain", f"order {number} comes in: {ORDER_FLOW} #{run_id}, five steps")
        return run_id

    async def _middle_of_a_step(self) -> None:
        """Let orders come in; returns when a pod can die without a step being performed twice."""
        order, give_up_at = await self._order(), time.monotonic() + _ORDERS_SECONDS
        while not self._is_amid(order):
            if time.monotonic() > give_up_at:
                raise DemoFailed(f"no order was met in a step\n{self._last_words()}")
            if any(run.run_id == order and run.ended for run in self._snapshot.runs):
                order = await self._order()  # it went by while this machine stood still
            await asyncio.sleep(0.02)

    def _is_amid(self, order: int) -> bool:
        """Two steps are done, and all that stands in the ledger has its checkpoint too."""
        running = {r.run_id: r.steps_done for r in self._running() if r.name == ORDER_FLOW}
        ledger = performed(self._ledger.read_text())
        on_record = all(ledger.get(run, Counter()).total() == running[run] for run in running)
        return on_record and 2 <= running.get(order, 0) < len(ORDER_STEPS)

    async def _leader(self) -> Pod:
        led = partial(self._is_led_since, DEFAULT, 0)
        await self._wait(led, _TAKEOVER_SECONDS, f"a leader of {DEFAULT}")
        return self._pods[self._snapshot.seats[DEFAULT].pod]

    def _is_led_since(self, group: str, epoch: int) -> bool:
        seat = self._snapshot.seats[group]
        return bool(seat.pod) and seat.epoch > epoch

    def _stands_by(self, pod: Pod) -> bool:
        return self._observer.pod_states()[pod.name] in ("standby", "leader")

    def _all_at_work(self) -> bool:
        for pod in self._pods.values():
            if not pod.running:
                raise DemoFailed(f"{pod.name} ended\n{self._last_words()}")
        states = self._observer.pod_states().values()
        led = all(seat.pod for seat in self._observer.seats.values())
        reports = any(run.name == REPORT and run.ended for run in self._snapshot.runs)
        return "starting" not in states and led and self._snapshot.count > 0 and reports

    def _running(self) -> list[Run]:
        return [r for r in self._snapshot.runs if r.kind != "singleton" and not r.ended]

    async def _until(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - time.monotonic()))

    async def _wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        give_up_at = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > give_up_at:
                raise DemoFailed(f"not within {seconds:g} s: {what}\n{self._last_words()}")
            await asyncio.sleep(0.02)

    def _last_words(self) -> str:
        return "\n".join(pod.described() for pod in self._pods.values())

    async def _follow(self) -> None:
        """Look, tell what is new, draw; again and again."""
        while True:
            before, self._snapshot = self._snapshot, await self._observer.snapshot(self._snapshot)
            for line in happened(before, self._snapshot):
                self._show.tell(line.tone, line.text, line.at)
            self._show.draw(self._page())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _feel_stalls(self) -> None:
        """Sum up how long this machine stood still: what is promised counts from when it runs."""
        while True:
            asleep = boottime()
            await asyncio.sleep(_NAP_SECONDS)
            late = boottime() - asleep - _NAP_SECONDS
            if late > _NAP_SECONDS:  # less is how a task wakes up
                self._stalled_seconds += late

    def _page(self) -> Page:
        elapsed, total = self._timing.clock(time.monotonic())
        return Page(self._headline, elapsed, total, self._snapshot, self._show.lines)

    # The end.

    async def _facts(self) -> Facts:
        self._act("the end: every tick is looked up")
        self._counts.append(self._snapshot.count)
        until, give_up_at = datetime.now(UTC), time.monotonic() + _SETTLE_SECONDS
        while True:
            with suppress(NobodyAnswers):
                facts = await self._found(until)
                if facts.settled or time.monotonic() > give_up_at:
                    return facts
            if time.monotonic() > give_up_at + _SETTLE_SECONDS:
                raise DemoFailed(f"no pod answers\n{self._last_words()}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _found(self, until: datetime) -> Facts:
        """What is known of all that was due by `until`."""
        flaky = await self._observer.all_runs(FLAKY)
        return Facts(
            takeovers=self._takeovers,
            ticks=await self._account(until),
            counts=self._counts,
            orders=await self._orders(),
            retried=sum(run.outcome == "succeeded" and run.attempt > 1 for run in flaky),
        )

    async def _account(self, until: datetime) -> Ticks:
        created = next(s.created_at for s in self._snapshot.schedules if s.name == REPORT)
        runs = await self._observer.all_runs(REPORT)
        every = timedelta(seconds=REPORT_SECONDS)
        return account(runs, every=every, after=created, until=until)

    async def _orders(self) -> Orders:
        runs = await self._observer.all_runs(ORDER_FLOW)
        steps = performed(self._ledger.read_text())
        done = [run for run in runs if run.outcome == "succeeded"]
        return Orders(
            steps={run.run_id: steps.get(run.run_id, Counter()) for run in done},
            unfinished=len(runs) - len(done),
            moved=sum(run.attempt > 1 for run in done),
        )


def performed(ledger: str) -> dict[int, Counter[str]]:
    """How often each step of each run stands in the ledger; a line not yet whole is left out."""
    steps: dict[int, Counter[str]] = {}
    for text in ledger.splitlines(keepends=True):
        if text.endswith("\n"):
            line = json.loads(text)
            steps.setdefault(int(line["run"]), Counter())[line["step"]] += 1
    return steps
