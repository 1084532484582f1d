"""A term from its beginning to its end: hooks, watch, attempts, and their cancellation.

Guarantees: the become hook of a term begins only when everything of the term before has ended;
what runs in a term is told to stop as soon as the term ends or its trust has run out; and `lose`
returns only when all of it has stopped, because its answer lets the successor begin.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from baton._cluster import ClusterContext, Scope, enter_scope, traceparent
from baton._connection import backoff_seconds
from baton._context import Context
from baton._sidecar import Sidecar
from baton._terms import Term, Terms
from baton._threads import invoke
from baton.errors import BatonError
from baton.v1 import callback_pb2 as pb

log = logging.getLogger("baton")
# A loop that was blocked finds the expired timer before the renewal that waits in the socket.
_RENEWAL_SLACK_SECONDS = 0.1

BecomeHook = Callable[[ClusterContext], Any]
LoseHook = Callable[[ClusterContext, str], Any]


@dataclass
class Hooks:
    """What the app does when it becomes leader of a group, and when it no longer is."""

    become: dict[str, BecomeHook] = field(default_factory=dict)
    lose: dict[str, LoseHook] = field(default_factory=dict)


@dataclass(eq=False)
class _Work:
    """What runs in one term, and the context in which it was opened."""

    context: ClusterContext
    attempts: dict[asyncio.Task[pb.ExecuteResponse], Context] = field(default_factory=dict)
    watching: list[asyncio.Task[None]] = field(default_factory=list)

    def cancel_attempts(self, reason: str) -> None:
        for task, attempt in self.attempts.items():
            attempt.cancel(task, reason)

    def stop_watching(self) -> None:
        for task in self.watching:
            task.cancel()


class Leading:
    """The terms of this app, with what runs in them."""

    def __init__(self, sidecar: Sidecar, hooks: Hooks) -> None:
        self.terms = Terms()
        self.stopping = False
        self.idle = asyncio.Event()  # no term is open, and none is being ended
        self.idle.set()
        self._sidecar, self._hooks = sidecar, hooks
        self._work: dict[Term, _Work] = {}
        self._endings: dict[str, asyncio.Task[bool]] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def term(self, group: str, epoch: int) -> Term | None:
        """The open term with that epoch, unless its trust has run out."""
        term = self.terms.get(group)
        return term if term and term.epoch == epoch and term.trust_left() > 0 else None

    async def become(self, context: ClusterContext, trusted_until: float | None) -> None:
        """Opens the term, unless it is old news; returns when the hook is through."""
        group = context.group
        if self.terms.get(group) and self.terms.is_news(group, context.epoch):
            await self.lose(context, "UNSPECIFIED", epoch=0)  # its end was never told
        async with self._locks[group]:
            if not self.terms.is_news(group, context.epoch):
                return
            term = self.terms.open(group, context.epoch, trusted_until)
            self._endings.pop(group, None)
            self._work[term] = work = _Work(context)
            self.idle.clear()
            work.watching = [_apart(self._watch(term)), _apart(self._enforce(term, work))]
            log.info("leading %s, epoch %d", group, term.epoch)
            try:
                if hook := self._hooks.become.get(group):
                    await invoke(hook, context)
            except BaseException:
                work.stop_watching()  # nothing may renew a term that was never taken up
                term.distrust()
                raise

    async def lose(self, context: ClusterContext, reason: str, *, epoch: int) -> bool:
        """Ends the term at once; returns when all has stopped: whether the hook agreed."""
        term = self.terms.close(context.group, epoch)
        if term is not None:
            self._endings[context.group] = asyncio.create_task(self._end(term, context, reason))
        ending = self._endings.get(context.group)
        if ending is None or (epoch == 0 and ending.done()):
            return True  # a sidecar that makes contact must not be told of an old failure for ever
        return await asyncio.shield(ending)

    def start(
        self, term: Term, attempt: Context, answer: Coroutine[Any, Any, pb.ExecuteResponse]
    ) -> asyncio.Task[pb.ExecuteResponse]:
        """Runs an attempt in its term: the term's end is its end too."""
        attempts = self._work[term].attempts
        task = asyncio.create_task(answer, name=f"baton-{attempt.name}-{attempt.run_id}")
        attempts[task] = attempt
        task.add_done_callback(attempts.pop)
        return task

    async def end_all(self, timeout: float) -> None:
        """Ends every term because the app stops; waits for it no longer than `timeout`."""
        self.stopping = True
        for term in self.terms.all():
            self.terms.close(term.group, term.epoch)  # at once: its loss may be told meanwhile
            ending = self._end(term, self._work[term].context, "SHUTDOWN")
            self._endings[term.group] = asyncio.create_task(ending)
        if pending := [task for task in self._endings.values() if not task.done()]:
            await asyncio.wait(pending, timeout=timeout)

    async def _end(self, term: Term, context: ClusterContext, reason: str) -> bool:
        work, context = self._work[term], replace(context, epoch=term.epoch, is_leader=False)
        enter_scope(Scope(context, self._sidecar, traceparent()))  # of this task, for the hook
        work.stop_watching()
        work.cancel_attempts("HANDOVER" if term.draining.is_set() else reason)
        log.info("no longer leading %s, epoch %d: %s", term.group, term.epoch, reason)
        try:
            async with self._locks[term.group]:  # a become hook may still be unwinding
                if work.attempts:
                    await asyncio.wait(set(work.attempts))
                if hook := self._hooks.lose.get(term.group):
                    await invoke(hook, context, reason)
        except Exception:
            log.exception("the hook for losing %s failed", term.group)
            return False
        finally:
            del self._work[term]
            if not self._work:
                self.idle.set()
        return True

    async def _watch(self, term: Term) -> None:
        """Renews trust for as long as the term is open; a broken stream is opened again."""
        waits, level = backoff_seconds(longest=1.0), logging.WARNING
        while True:
            try:
                async for leader in self._sidecar.leadership.watch(term.group):
                    term.hear(leader, read_at=term.clock())
                    waits, level = backoff_seconds(longest=1.0), logging.WARNING
            except BatonError as error:
                log.log(level, "watching %s: %s: %s", term.group, error.reason, error)
                level = logging.DEBUG  # once is enough until it works again
            await asyncio.sleep(next(waits))

    async def _enforce(self, term: Term, work: _Work) -> None:
        """Cancels what still runs when trust was not renewed in time."""
        while True:
            await asyncio.sleep(min(max(term.trust_left(), 0.0), 1.0) + _RENEWAL_SLACK_SECONDS)
            if term.trust_left() <= 0 and work.attempts:
                log.warning("trust in term %d of %s has run out", term.epoch, term.group)
                work.cancel_attempts("TRUST_EXPIRED")


def _apart(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task outside the context of the callback that starts it: its trace is not ours."""
    return asyncio.create_task(coroutine, context=contextvars.Context())
