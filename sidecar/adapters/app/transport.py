"""Reaches the app in the way that is there: a process that attached, or the callback it serves.

The peer that is connected first is used until its connection breaks; then its terms end, and the
next one is chosen. An attached process is preferred to a callback that never answered as an app.

Guarantees:
- a run is delivered only to the peer that acknowledged OnBecomeLeader for its term;
- an acknowledgement of OnLoseLeadership counts only if that same peer gave it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sidecar.adapters.app.messages import leader_message
from sidecar.adapters.app.process import AttachedProcess
from sidecar.adapters.app.processes import AttachedProcesses
from sidecar.adapters.grpc_app import AppLink
from sidecar.execution.calls import CallPerRun
from sidecar.execution.ports import Call
from sidecar.model.election_types import LeaderView
from sidecar.model.errors import AppUnavailable
from sidecar.model.run import Answer, CallFailed, Run
from sidecar.model.term import LossReason, Term


class Peer(Protocol):
    """One way to the app."""

    @property
    def connected(self) -> bool: ...
    @property
    def capacity(self) -> int: ...
    async def check(self, timeout: float) -> None: ...
    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None: ...
    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None: ...
    def deliver(self, run: Run, answered: Callable[[Answer], None]) -> Call: ...


class Callback:
    """The app serves AppCallback at `app.address`."""

    def __init__(self, link: AppLink, calls: CallPerRun, capacity: int) -> None:
        self.link = link
        self.capacity = capacity
        self.answers = False  # it acknowledged a loss on this connection: it is an app
        self.deliver = calls.deliver
        self._calls = calls

    @property
    def connected(self) -> bool:
        return self._calls.connected

    async def wait_connected(self, seconds: float) -> bool:
        return await self._calls.wait_connected(seconds)

    async def check(self, timeout: float) -> None:
        await self.link.check(timeout)

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None:
        await self.link.become_leader(term, trusted_until, timeout)

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        await self.link.lose_leadership(term, reason, timeout)
        self.answers = True


class AppTransport:
    """Fits the app watch (`Link`), the elector (`App`) and, by `delivery`, the pipeline."""

    def __init__(self, callback: Callback, processes: AttachedProcesses) -> None:
        self.processes = processes
        self.on_capacity: list[Callable[[int], None]] = []
        self._callback = callback
        self._peer: Peer | None = None
        self._peers: dict[tuple[str, int], Peer] = {}  # by group and epoch
        processes.on_change.append(self._announce_capacity)

    @property
    def peer(self) -> Peer | None:
        return self._peer

    @property
    def primary(self) -> AttachedProcess | None:
        return self._peer if isinstance(self._peer, AttachedProcess) else None

    # ── for the app watch ───────────────────────────────────────────────────────────────────────

    async def wait_connected(self) -> None:
        """Choose a peer as soon as there is one."""
        callback = asyncio.create_task(self._callback.link.wait_connected(), name="app.callback")
        try:
            while True:
                changed = asyncio.create_task(self.processes.changed(), name="app.processes")
                try:
                    if process := next(self.processes.ready, None):
                        process.is_primary = True
                        return self._choose(process)
                    if callback.done():
                        self._callback.answers = False
                        return self._choose(self._callback)
                    await asyncio.wait({callback, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
        finally:
            callback.cancel()

    async def wait_disconnected(self) -> None:
        """Return after the connection to the peer is lost, or another one should replace it."""
        if process := self.primary:
            await process.closed.wait()
        else:
            await self._callback_over()
        self._peer = None

    async def check(self, timeout: float) -> None:
        await self._required().check(timeout)

    # ── for the election ────────────────────────────────────────────────────────────────────────

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None:
        peer = self._required()
        self._peers[term.group, term.epoch] = peer
        await peer.become_leader(term, trusted_until, timeout)

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        peer = self._peers.pop((term.group, term.epoch), None) or self._required()
        await peer.lose_leadership(term, reason, timeout)

    def renew(self, view: LeaderView) -> None:
        """Send the trust time to the process that leads; a callback app asks for it itself."""
        peer = self._peers.get((view.group, view.epoch))
        if view.is_leader and isinstance(peer, AttachedProcess):
            peer.renew(leader_message(view))

    # ── for the pipeline ────────────────────────────────────────────────────────────────────────

    @property
    def connected(self) -> bool:
        return self._peer is not None and self._peer.connected

    async def wait_delivery(self, seconds: float) -> bool:
        if self.connected:
            return True
        if isinstance(self._peer, Callback):
            return await self._callback.wait_connected(seconds)
        return False  # its terms end: the next one begins with another peer

    def deliver(self, run: Run, answered: Callable[[Answer], None]) -> Call:
        peer = self._peers.get((run.group, run.ref.epoch))
        if peer is None:
            return Undelivered(answered)
        return peer.deliver(run, answered)

    # ── parts ───────────────────────────────────────────────────────────────────────────────────

    def _required(self) -> Peer:
        if self._peer is None:
            raise AppUnavailable("the app is not connected")
        return self._peer

    def _choose(self, peer: Peer) -> None:
        self._peer = peer
        self._announce_capacity()

    def _announce_capacity(self) -> None:
        if self._peer:
            for listener in self.on_capacity:
                listener(self._peer.capacity)

    async def _callback_over(self) -> None:
        lost = asyncio.create_task(self._callback.link.wait_disconnected(), name="app.callback")
        try:
            while not lost.done():
                if not self._callback.answers and next(self.processes.ready, None):
                    return
                changed = asyncio.create_task(self.processes.changed(), name="app.processes")
                try:
                    await asyncio.wait({lost, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
        finally:
            lost.cancel()

    def unhandled(self, kind: str, name: str) -> str:
        """Why the primary cannot execute this singleton or schedule; empty: it can."""
        if (primary := self.primary) is None:
            return ""
        hello = primary.hello
        if name in (hello.singletons if kind == "singleton" else hello.schedules):
            return ""
        return f"process {hello.process_id} has no handler for {kind} {name!r}"

    def described(self) -> list[dict[str, Any]]:
        """The attached processes in `/health`."""
        return [
            {
                "process": each.hello.process_id,
                "client": each.hello.client,
                "primary": each is self._peer,
                "healthy": each.healthy,
                "runs": each.open_runs,
                "capacity": each.capacity,
            }
            for each in self.processes.all
        ]


class Delivery:
    """The pipeline's `App`: delivers the runs of terms."""

    def __init__(self, transport: AppTransport) -> None:
        self._transport = transport
        self.deliver = transport.deliver

    @property
    def connected(self) -> bool:
        return self._transport.connected

    async def wait_connected(self, seconds: float) -> bool:
        return await self._transport.wait_delivery(seconds)


class Undelivered:
    """A call for a term that no peer leads."""

    def __init__(self, answered: Callable[[Answer], None]) -> None:
        failed = CallFailed("UNAVAILABLE", "the app is not connected", delivered=False)
        self._handle = asyncio.get_running_loop().call_soon(answered, failed)

    def cancel(self) -> Awaitable[object]:
        self._handle.cancel()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done
