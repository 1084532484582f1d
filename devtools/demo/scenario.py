"""The phases of the demo: start, crash of the leader, restart of the pod, clean hand-over.

Each phase waits for the state that it needs, not only for a time. If that state does not come, the
demo fails with the last log lines of the pods.
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

import grpc

from devtools.demo.display import Display
from devtools.demo.events import events_between
from devtools.demo.model import (
    COORDINATOR,
    DEFAULT,
    FLAKY,
    GROUPS,
    ORDER_FLOW,
    ORDER_STEPS,
    RECEIPT,
    REPORT,
    DemoFailed,
    Run,
    Snapshot,
    Takeover,
)
from devtools.demo.observer import NoPodAnswers, Observer
from devtools.demo.pods import REPORT_SECONDS, STEP_SECONDS, Pod
from devtools.demo.summary import Orders, Results, Ticks, count_ticks
from devtools.demo.view import Page
from sidecar.adapters.clock import boottime

_REFRESH_SECONDS = 0.2
_START_SECONDS = 60.0
_TAKEOVER_SECONDS = 20.0
_SETTLE_SECONDS = 8.0
_ORDERS_SECONDS = 30.0
_RECEIPT_SECONDS = 0.3
_STALL_CHECK_SECONDS = 0.05
_STOPPED_SECONDS = 3.0
_PHASES_SECONDS_MIN = 14.0
_FINISH_SECONDS = 2.0  # to read the results and to stop the pods


class Timing:
    """When the phases begin: fractions of the time that is left once the cluster has started."""

    def __init__(self, seconds: float, began: float) -> None:
        self._seconds, self._began = seconds, began  # the start of the command, monotonic
        self.cluster_started(began)

    def cluster_started(self, now: float) -> None:
        """Divide the time that is left among the phases, but give them at least what they need."""
        left = self._began + self._seconds - _FINISH_SECONDS - now
        self._start, self._length = now, max(_PHASES_SECONDS_MIN, left)

    @property
    def crash_at(self) -> float:
        return self._start + self._length / 3

    @property
    def restart_at(self) -> float:
        return self._start + self._length * 0.55

    @property
    def hand_over_at(self) -> float:
        return self._start + self._length * 0.72

    @property
    def end_at(self) -> float:
        return self._start + self._length

    def progress(self, now: float) -> tuple[float, float]:
        """Seconds since the start of the command, and the expected total."""
        elapsed = now - self._began
        return elapsed, max(elapsed, self.end_at + _FINISH_SECONDS - self._began)


class Scenario:
    """Runs the phases once; `run` returns the results that the summary checks."""

    def __init__(self, pods: Sequence[Pod], display: Display, ledger: Path, timing: Timing) -> None:
        self._pods = {pod.name: pod for pod in pods}
        self._display, self._ledger, self._timing = display, ledger, timing
        self._observer = Observer(pods)
        self._snapshot = Snapshot(datetime.now(UTC), self._observer.pod_states())
        self._headline = f"starting {len(pods)} pods, each with an app and a sidecar"
        self._takeovers: list[Takeover] = []
        self._counts: list[int] = []
        self._order_numbers = count(1001)
        self._stalled_seconds = 0.0
        self._submitting = True

    async def run(self) -> Results:
        followers = [
            asyncio.create_task(self._observer.run(), name="demo.observer"),
            asyncio.create_task(self._refresh(), name="demo.view"),
            asyncio.create_task(self._measure_stalls(), name="demo.stalls"),
        ]
        phases = asyncio.create_task(self._run_phases(), name="demo.phases")
        followers.append(asyncio.create_task(self._submit_receipts(), name="demo.jobs"))
        try:
            await asyncio.wait([phases, *followers], return_when=asyncio.FIRST_COMPLETED)
            for follower in followers:
                if follower.done():
                    follower.result()  # it ends only by an error
            return await phases
        finally:
            phases.cancel()
            for follower in followers:
                follower.cancel()
            await asyncio.gather(phases, *followers, return_exceptions=True)

    async def _run_phases(self) -> Results:
        await self._start()
        await self._crash()
        await self._restart()
        await self._hand_over()
        await self._sleep_until(self._timing.end_at)
        return await self._results()

    # The phases.

    async def _start(self) -> None:
        self._announce(self._headline)
        for pod in self._pods.values():
            pod.start()
        await self._wait(
            self._cluster_is_working, _START_SECONDS, "every group to have a leader and a first run"
        )
        self._timing.cluster_started(time.monotonic())
        await self._place_order()
        self._headline = "one leader per group runs the work; the other pods are on standby"

    async def _crash(self) -> None:
        await self._sleep_until(self._timing.crash_at - 2 * STEP_SECONDS)
        await self._wait_for_order_in_progress()
        victim = await self._leader()
        self._counts.append(self._snapshot.count)
        self._announce(f"SIGKILL to {victim.name}: app and sidecar die in the middle of an order")
        await self._measure_takeover("crash", victim, victim.crash)
        await self._wait(
            lambda: self._snapshot.count > self._counts[0],
            _SETTLE_SECONDS,
            f"{COORDINATOR} to continue counting",
        )
        self._counts.append(self._snapshot.count)

    async def _restart(self) -> None:
        await self._sleep_until(self._timing.restart_at)
        for pod in self._pods.values():
            if not pod.running:
                self._announce(f"{pod.name} is restarted")
                pod.start()
                joined = partial(self._has_joined, pod)
                await self._wait(joined, _START_SECONDS, f"{pod.name} to rejoin the cluster")
                self._announce(f"{pod.name} rejoined as a standby: no work was interrupted")

    async def _hand_over(self) -> None:
        await self._sleep_until(self._timing.hand_over_at)
        with suppress(DemoFailed):  # the drain waits for running runs as well
            await self._wait(lambda: not self._running(), _SETTLE_SECONDS, "the end of all runs")
        leader = await self._leader()
        self._announce(f"SIGTERM to {leader.name}: it hands over its groups and shuts down")
        await self._measure_takeover("hand-over", leader, leader.terminate)
        await leader.stop()
        await self._place_order()
        await asyncio.sleep(_STOPPED_SECONDS)
        leader.start()

    async def _measure_takeover(self, cause: str, pod: Pod, fault: Callable[[], None]) -> None:
        """Call `fault` and wait until every group that `pod` led has a new leader."""
        led = [group for group in GROUPS if self._observer.leaders[group].pod == pod.name]
        epochs = {group: self._observer.leaders[group].epoch for group in led}
        at, stalled_seconds = datetime.now(UTC), self._stalled_seconds
        fault()
        for group in led:
            # Wait for the snapshot, so that the new leader is reported before this line.
            taken = partial(self._has_leader_after, group, epochs[group])
            await self._wait(taken, _TAKEOVER_SECONDS, f"a new leader of {group}")
            leader = self._snapshot.leaders[group]
            seconds = ((leader.since or at) - at).total_seconds()
            stalled = self._stalled_seconds - stalled_seconds
            self._takeovers.append(Takeover(cause, group, pod.name, leader.pod, seconds, stalled))
            self._announce(f"{leader.pod} took over {group} {seconds:.2f} s after the {cause}")

    # Helpers of the phases.

    def _announce(self, text: str) -> None:
        self._headline = text
        self._display.report("phase", text)

    async def _place_order(self) -> int:
        number = f"A-{next(self._order_numbers)}"
        run_id = await self._observer.trigger(ORDER_FLOW, {"order": number})
        text = f"order {number} received: {ORDER_FLOW} #{run_id}, {len(ORDER_STEPS)} steps"
        self._display.report("plain", text)
        return run_id

    async def _wait_for_order_in_progress(self) -> None:
        """Place orders until one is half done in such a way that a crash now repeats no step."""
        order, give_up_at = await self._place_order(), time.monotonic() + _ORDERS_SECONDS
        while not self._is_in_progress(order):
            if time.monotonic() > give_up_at:
                raise DemoFailed(f"no order was seen in progress\n{self._pod_logs()}")
            if any(run.run_id == order and run.ended for run in self._snapshot.runs):
                order = await self._place_order()  # it finished while this machine was stalled
            await asyncio.sleep(0.02)

    def _is_in_progress(self, order: int) -> bool:
        """Whether two steps or more are done, and every step in the ledger has its checkpoint."""
        running = {r.run_id: r.steps_done for r in self._running() if r.name == ORDER_FLOW}
        ledger = steps_performed(self._ledger.read_text())
        checkpointed = all(ledger.get(run, Counter()).total() == running[run] for run in running)
        return checkpointed and 2 <= running.get(order, 0) < len(ORDER_STEPS)

    async def _leader(self) -> Pod:
        led = partial(self._has_leader_after, DEFAULT, 0)
        await self._wait(led, _TAKEOVER_SECONDS, f"a leader of {DEFAULT}")
        return self._pods[self._snapshot.leaders[DEFAULT].pod]

    def _has_leader_after(self, group: str, epoch: int) -> bool:
        leader = self._snapshot.leaders[group]
        return bool(leader.pod) and leader.epoch > epoch

    def _has_joined(self, pod: Pod) -> bool:
        return self._observer.pod_states()[pod.name] in ("standby", "leader")

    def _cluster_is_working(self) -> bool:
        for pod in self._pods.values():
            if not pod.running:
                raise DemoFailed(f"{pod.name} exited\n{self._pod_logs()}")
        states = self._observer.pod_states().values()
        led = all(leader.pod for leader in self._observer.leaders.values())
        reports = any(run.name == REPORT and run.ended for run in self._snapshot.runs)
        return "starting" not in states and led and self._snapshot.count > 0 and reports

    def _running(self) -> list[Run]:
        return [r for r in self._snapshot.runs if r.kind != "singleton" and not r.ended]

    async def _sleep_until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - time.monotonic()))

    async def _wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        give_up_at = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > give_up_at:
                problem = f"timed out after {seconds:g} s waiting for {what}"
                raise DemoFailed(f"{problem}\n{self._pod_logs()}")
            await asyncio.sleep(0.02)

    def _pod_logs(self) -> str:
        return "\n".join(pod.log_tails() for pod in self._pods.values())

    async def _refresh(self) -> None:
        """Take snapshots, report what is new and draw, in a loop."""
        while True:
            before, self._snapshot = self._snapshot, await self._observer.snapshot(self._snapshot)
            for event in events_between(before, self._snapshot):
                self._display.report(event.style, event.text, event.at)
            self._display.draw(self._page())
            await asyncio.sleep(_REFRESH_SECONDS)

    async def _submit_receipts(self) -> None:
        """Submit a job again and again, through any pod, until the last phase begins."""
        for number in count(1):
            while self._submitting:
                with suppress(NoPodAnswers, grpc.aio.AioRpcError):
                    await self._observer.submit(RECEIPT, {"receipt": number})
                    break
                await asyncio.sleep(_REFRESH_SECONDS)
            await asyncio.sleep(_RECEIPT_SECONDS)

    async def _measure_stalls(self) -> None:
        """Add up how long this machine was stalled: the limits of a takeover exclude that time."""
        while True:
            before = boottime()
            await asyncio.sleep(_STALL_CHECK_SECONDS)
            late = boottime() - before - _STALL_CHECK_SECONDS
            if late > _STALL_CHECK_SECONDS:  # less is normal scheduling delay
                self._stalled_seconds += late

    def _page(self) -> Page:
        elapsed, total = self._timing.progress(time.monotonic())
        return Page(self._headline, elapsed, total, self._snapshot, self._display.events)

    # The results.

    async def _results(self) -> Results:
        self._submitting = False
        self._announce("final check: every tick and every job is looked up")
        self._counts.append(self._snapshot.count)
        until, give_up_at = datetime.now(UTC), time.monotonic() + _SETTLE_SECONDS
        while True:
            with suppress(NoPodAnswers):
                results = await self._read_results(until)
                if results.finished or time.monotonic() > give_up_at:
                    return results
            if time.monotonic() > give_up_at + _SETTLE_SECONDS:
                raise DemoFailed(f"no pod answers\n{self._pod_logs()}")
            await asyncio.sleep(_REFRESH_SECONDS)

    async def _read_results(self, until: datetime) -> Results:
        """The results for everything that was due by `until`."""
        flaky = await self._observer.all_runs(FLAKY)
        return Results(
            takeovers=self._takeovers,
            ticks=await self._count_ticks(until),
            counts=self._counts,
            orders=await self._read_orders(),
            retried=sum(run.outcome == "succeeded" and run.attempt > 1 for run in flaky),
            jobs=await self._observer.jobs(),
        )

    async def _count_ticks(self, until: datetime) -> Ticks:
        created = next(s.created_at for s in self._snapshot.schedules if s.name == REPORT)
        runs = await self._observer.all_runs(REPORT)
        every = timedelta(seconds=REPORT_SECONDS)
        return count_ticks(runs, every=every, after=created, until=until)

    async def _read_orders(self) -> Orders:
        runs = await self._observer.all_runs(ORDER_FLOW)
        steps = steps_performed(self._ledger.read_text())
        done = [run for run in runs if run.outcome == "succeeded"]
        return Orders(
            steps={run.run_id: steps.get(run.run_id, Counter()) for run in done},
            unfinished=len(runs) - len(done),
            moved=sum(run.attempt > 1 for run in done),
        )


def steps_performed(ledger: str) -> dict[int, Counter[str]]:
    """Run id -> how often each step is in the ledger; an incomplete last line is ignored."""
    steps: dict[int, Counter[str]] = {}
    for text in ledger.splitlines(keepends=True):
        if text.endswith("\n"):
            line = json.loads(text)
            steps.setdefault(int(line["run"]), Counter())[line["step"]] += 1
    return steps
