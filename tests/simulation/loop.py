"""An asyncio event loop in virtual time, shared by several modelled processes.

Guarantees: nothing ever blocks and nothing depends on the machine: time jumps to the next timer,
callbacks run in the order they were scheduled, so one seed gives one history.

Every callback belongs to the `Process` in whose context it was scheduled. That is how a process
can be frozen (its callbacks wait, its clock runs on), suspended (its timers stop as well) or
killed (its tasks vanish) while all others go on in the same loop; and why each process sees a
clock of its own rate.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any

_PROCESS: ContextVar["Process | None"] = ContextVar("process", default=None)
# Timers fire a little late, as everywhere; it also keeps rounded times from standing still.
_TIMER_LATENESS = 1e-6
_BURIAL_ROUNDS_MAX = 20
# So many callbacks in one instant are a loop that never waits.
_CALLBACKS_PER_INSTANT_MAX = 10_000


_Act = Callable[..., object]


class _Task(asyncio.Task[Any]):
    """Hashed by its number, not by its address: a TaskGroup cancels in the order of a set."""

    def __init__(self, number: int, *arguments: Any, **options: Any) -> None:
        self._number = number
        super().__init__(*arguments, **options)

    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[Any]):
    """Likewise: whoever waits for several holds them in a set."""

    def __init__(self, number: int, **options: Any) -> None:
        self._number = number
        super().__init__(**options)

    def __hash__(self) -> int:
        return self._number


def _nothing() -> None:
    """What a handle in the heap has for a call."""


class Process:
    """Something that runs on the loop and can be stopped from outside."""

    def __init__(self, loop: "VirtualLoop", name: str, *, rate: float, offset: float) -> None:
        self.name = name
        self.dead = False
        self.frozen = False
        self.thawed_at = float("-inf")  # global time of the last thaw
        self._loop = loop
        self._rate = rate
        self._offset = offset
        self._lag = 0.0  # suspended time, which the loop's clock (CLOCK_MONOTONIC) does not count
        self._frozen_at = 0.0
        self._backlog: list[asyncio.Handle] = []
        self._late_timers: list[asyncio.TimerHandle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._context = copy_context()
        self._context.run(_PROCESS.set, self)

    # ── its clocks ──────────────────────────────────────────────────────────────────────────────

    def clock(self) -> float:
        """CLOCK_BOOTTIME of the machine it runs on."""
        return self._offset + self._rate * self._loop.now

    def global_time(self, boottime: float) -> float:
        """When its clock shows, or showed, `boottime`."""
        return (boottime - self._offset) / self._rate

    def monotonic(self) -> float:
        return self.clock() - self._lag

    def timer_due(self, monotonic: float) -> float:
        return self.global_time(monotonic + self._lag)

    # ── running ─────────────────────────────────────────────────────────────────────────────────

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        return self._context.copy().run(self._loop.create_task, work, name=name)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run `function` inside this process, as soon as it runs at all."""
        self._loop.call_soon(function, *arguments, context=self._context)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        if len(self._tasks) > 50:
            self._tasks = [t for t in self._tasks if not t.done()]
        self._tasks.append(task)

    def hold(self, handle: asyncio.Handle) -> None:
        """A frozen process keeps its callbacks for later."""
        if isinstance(handle, asyncio.TimerHandle):
            self._late_timers.append(handle)
        else:
            self._backlog.append(handle)

    # ── stopping ────────────────────────────────────────────────────────────────────────────────

    def freeze(self) -> None:
        if not self.frozen and not self.dead:
            self.frozen, self._frozen_at = True, self._loop.now

    def thaw(self, *, suspended: bool = False) -> None:
        """Run again: first what became ready, then the timers that passed.

        After a suspend of the machine the loop's clock has stood still, so timers come later.
        """
        if not self.frozen:
            return
        self.frozen, self.thawed_at = False, self._loop.now
        timers, self._late_timers = self._late_timers, []
        handles, self._backlog = self._backlog, []
        self._loop.ready.extend(handles)
        if not suspended:
            self._loop.ready.extend(timers)
            return
        pause = self._loop.now - self._frozen_at
        self._lag += pause * self._rate
        self._loop.delay_timers(self, pause)
        for timer in timers:
            self._loop.push(timer.when() + pause, timer)

    def kill(self) -> None:
        """All tasks vanish. What they still do on their way out reaches nobody: `dead` mutes the
        ports."""
        if not self.dead:
            self.dead = True
            self.thaw()
            self._bury(_BURIAL_ROUNDS_MAX)

    def _bury(self, rounds: int) -> None:
        self._tasks = [t for t in self._tasks if not t.done()]
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            if not rounds:
                raise AssertionError(f"tasks survive their process: {self._tasks}")
            self._loop.call_world(0.0, self._bury, rounds - 1)

    @property
    def buried(self) -> bool:
        return self.dead and all(t.done() for t in self._tasks)


class VirtualLoop(asyncio.AbstractEventLoop):
    """What asyncio's tasks, futures, timeouts and locks need of a loop, and no more."""

    def __init__(self, on_problem: Callable[[str], None]) -> None:
        self.now = 0.0  # global virtual seconds
        self.ready: deque[asyncio.Handle] = deque()
        self.callbacks_run = 0
        self._numbers = count()
        self.after_step: Callable[[], None] = _nothing  # called whenever something has run
        self._on_problem = on_problem
        # Timers of processes are handles; those of the world outside are plain calls.
        self._timers: list[tuple[float, int, asyncio.Handle | None, _Act, tuple[Any, ...]]] = []
        self._sequence = 0

    # ── driving ─────────────────────────────────────────────────────────────────────────────────

    def run_for(self, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let virtual time pass until `done` or for `seconds`."""
        until, ready = self.now + seconds, self.ready
        events._set_running_loop(self)
        try:
            while not done():
                if ready:
                    self._run_ready()
                    self.after_step()
                timers = self._timers
                if not timers or timers[0][0] > until:
                    self.now = until
                    return
                when, _, handle, act, arguments = heapq.heappop(timers)
                if when > self.now:
                    self.now = when
                if handle is None:
                    act(*arguments)
                else:
                    ready.append(handle)
        finally:
            events._set_running_loop(None)

    def _run_ready(self) -> None:
        ready, limit = self.ready, self.callbacks_run + _CALLBACKS_PER_INSTANT_MAX
        while ready:
            if self.callbacks_run > limit:
                self._on_problem(f"spins without waiting: {ready[0]}")
                return
            handle = ready.popleft()
            if handle._cancelled:
                continue
            context: Context = handle._context  # type: ignore[attr-defined]
            process = context.get(_PROCESS)
            if process is None or not process.frozen:
                self.callbacks_run += 1
                handle._run()
            else:
                process.hold(handle)

    # ── what asyncio asks for ───────────────────────────────────────────────────────────────────

    def time(self) -> float:
        process = _PROCESS.get()
        return process.monotonic() if process else self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        process = _PROCESS.get()
        due = process.timer_due(when) if process else when
        timer = asyncio.TimerHandle(due, callback, args, self, context)
        self.push(due + _TIMER_LATENESS, timer)
        return timer

    def call_world(self, delay: float, act: _Act, *arguments: Any) -> None:
        """A timer of the world outside all processes."""
        self._sequence += 1
        heapq.heappush(self._timers, (self.now + delay, self._sequence, None, act, arguments))

    def push(self, when: float, handle: asyncio.Handle) -> None:
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, handle, _nothing, ()))

    def delay_timers(self, process: Process, pause: float) -> None:
        """The clock that this process's timers go by has stood still."""
        for place, (when, order, handle, act, arguments) in enumerate(self._timers):
            if handle and handle._context.get(_PROCESS) is process:  # type: ignore[attr-defined]
                self._timers[place] = (when + pause, order, handle, act, arguments)
        heapq.heapify(self._timers)

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(next(self._numbers), loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        task = _Task(next(self._numbers), coro, loop=self, name=name, context=context)
        if process := _PROCESS.get():
            process.adopt(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers stay in the heap until their time: there are few."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if "never retrieved" in str(context.get("message")):
            return  # An answer that came for somebody who no longer waits.
        error = context.get("exception")
        self._on_problem(f"{context.get('message')}: {error!r}")
