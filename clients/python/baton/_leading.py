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

from baton._cluster import ClusterContext, HookScope, enter_scope, traceparent
from baton._connection import backoff_seconds
from baton._context import Context
from baton._sidecar import Sidecar
from baton._terms import Term, Terms
from baton._threads import invoke
from baton.errors import BatonError
from baton.v1 import leadership_pb2

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
    attempts: set[Context] = field(default_factory=set)
    watching: list[asyncio.Task[None]] = field(default_factory=list)
    opening: asyncio.Task[Any] | None = None  # the become hook

    def cancel_attempts(self, reason: str) -> None:
        for attempt in [*self.attempts]:
            attempt.cancel(reason)

    def stop_watching(self) -> None:
        for task in self.watching:
            task.cancel()


class TermOver(Exception):
    """The term ended while its become hook ran."""


class Leading:
    """The terms of this app, with what runs in them.

    `watches`: trust is renewed by Leadership.Watch; else the caller hands renewals to `hear`.
    """

    def __init__(self, sidecar: Sidecar, hooks: Hooks, *, watches: bool = True) -> None:
        self.terms = Terms()
        self.stopping = False
        self.idle = asyncio.Event()  # no term is open, and none is being ended
        self.idle.set()
        self._sidecar, self._hooks, self._watches = sidecar, hooks, watches
        self._work: dict[Term, _Work] = {}
        self._heard: dict[str, tuple[leadership_pb2.Leader, float]] = {}
        self._endings: dict[str, asyncio.Task[bool]] = {}
        self._returning: set[asyncio.Task[None]] = set()
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
            term, work = self._open(context, trusted_until)
            try:
                if hook := self._hooks.become.get(group):
                    await self._opened(work, hook)
            except BaseException:
                work.stop_watching()  # nothing may renew a term that was never taken up
                term.distrust()
                raise

    async def lose(self, context: ClusterContext, reason: str, *, epoch: int) -> bool:
        """Ends the term at once; returns when all has stopped: whether the hook agreed."""
        term = self.terms.close(context.group, epoch)
        if term is not None:
            self._begin_end(term, context, reason)
        ending = self._endings.get(context.group)
        if ending is None or (epoch == 0 and ending.done()):
            return True  # a sidecar that makes contact must not be told of an old failure for ever
        return await asyncio.shield(ending)

    def hear(self, leader: leadership_pb2.Leader) -> None:
        """Takes in a renewal of trust, or its end; also for a term that is about to be opened."""
        read_at = self.terms.clock()
        self._heard[leader.group] = leader, read_at
        if term := self.terms.get(leader.group):
            term.hear(leader, read_at=read_at)

    def enter(self, term: Term, attempt: Context) -> None:
        """Counts an attempt to its term: the term's end is its end too."""
        self._work[term].attempts.add(attempt)

    def leave(self, term: Term, attempt: Context) -> None:
        """The attempt has ended."""
        if work := self._work.get(term):
            work.attempts.discard(attempt)

    def disconnected(self) -> None:
        """Ends every term at once: the connection to the sidecar is gone."""
        reason = "SHUTDOWN" if self.stopping else "LEASE_LOST"
        self._end_each(reason, cancel_reason="CALL_CANCELLED")
        self._heard.clear()

    async def resign_all(self) -> None:
        """Asks the sidecar to hand over what this app leads, and waits until it has."""
        for term in self.terms.all():
            try:
                await self._sidecar.leadership.resign(term.group)
            except BatonError as error:  # it may be handing over already, or be gone
                log.warning("resigning %s: %s", term.group, error)
        await self.idle.wait()

    async def end_all(self, timeout: float) -> None:
        """Ends every term because the app stops; waits for it no longer than `timeout`."""
        self.stopping = True
        self._end_each("SHUTDOWN")
        for task in self._returning:
            task.cancel()
        if pending := [task for task in self._endings.values() if not task.done()]:
            await asyncio.wait(pending, timeout=timeout)

    def _open(self, context: ClusterContext, trusted_until: float | None) -> tuple[Term, _Work]:
        group = context.group
        term = self.terms.open(group, context.epoch, trusted_until)
        leader, read_at = self._heard.get(group, (None, 0.0))
        if leader is not None and leader.is_leader and leader.epoch == term.epoch:
            term.hear(leader, read_at=read_at)  # it came while the end of the last term was awaited
        self._endings.pop(group, None)
        self._work[term] = work = _Work(context)
        self.idle.clear()
        work.watching = [_apart(self._enforce(term, work))]
        if self._watches:
            work.watching.append(_apart(self._watch(term)))
        log.info("leading %s, epoch %d", group, term.epoch)
        return term, work

    async def _opened(self, work: _Work, hook: BecomeHook) -> None:
        """Runs the become hook in a task of its own, so that the end of the term can stop it."""
        work.opening = task = asyncio.create_task(invoke(hook, work.context))
        try:
            await task
        except asyncio.CancelledError:
            if (caller := asyncio.current_task()) and caller.cancelling():
                raise
            raise TermOver(f"term {work.context.epoch} is over") from None
        finally:
            work.opening = None

    def _end_each(self, reason: str, *, cancel_reason: str = "") -> None:
        for term in self.terms.all():
            self.terms.close(term.group, term.epoch)  # at once: its loss may be told meanwhile
            self._begin_end(term, self._work[term].context, reason, cancel_reason=cancel_reason)

    def _begin_end(
        self, term: Term, context: ClusterContext, reason: str, *, cancel_reason: str = ""
    ) -> None:
        """Stops what runs in a closed term now; hook and waiting follow in a task."""
        work = self._work[term]
        work.stop_watching()
        work.cancel_attempts("HANDOVER" if term.draining.is_set() else cancel_reason or reason)
        if work.opening is not None:
            work.opening.cancel()
        log.info("no longer leading %s, epoch %d: %s", term.group, term.epoch, reason)
        context = replace(context, epoch=term.epoch, is_leader=False)
        self._endings[term.group] = asyncio.create_task(self._end(term, work, context, reason))

    async def _end(self, term: Term, work: _Work, context: ClusterContext, reason: str) -> bool:
        enter_scope(HookScope(context, self._sidecar, traceparent()))  # of this task, for the hook
        try:
            async with self._locks[term.group]:  # a become hook may still be unwinding
                if tasks := {attempt.task for attempt in work.attempts if attempt.task}:
                    await asyncio.wait(tasks)
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
        """Ends the term when trust was not renewed in time: the sidecar may be frozen or gone."""
        while True:
            await asyncio.sleep(min(max(term.trust_left(), 0.0), 1.0) + _RENEWAL_SLACK_SECONDS)
            if term.trust_left() <= 0:
                break
        log.warning("trust in term %d of %s has run out", term.epoch, term.group)
        if self.terms.close(term.group, term.epoch) is term:
            self._begin_end(term, work.context, "LEASE_LOST", cancel_reason="TRUST_EXPIRED")
            task = _apart(self._return(term))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _return(self, term: Term) -> None:
        """Resigns a term that ended here by itself, should the sidecar still hold it.

        A sidecar that could not renew trust, but can call, would wait for this app for ever.
        """
        waits = backoff_seconds(first=1.0, longest=10.0)
        while self.terms.last_lost(term.group) == term.epoch and not self.stopping:
            try:
                leader = await self._sidecar.leadership.get(term.group)
                if leader.is_leader and leader.epoch == term.epoch and not leader.draining:
                    await self._sidecar.leadership.resign(term.group)
            except BatonError as error:
                log.debug("resigning %s: %s", term.group, error)
                await asyncio.sleep(next(waits))
            else:
                return


def _apart(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task outside the context of the callback that starts it: its trace is not ours."""
    return asyncio.create_task(coroutine, context=contextvars.Context())
