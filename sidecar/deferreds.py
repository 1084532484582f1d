"""Durable promises: created by a run or another caller, awaited here, ended with their token.

Guarantees:
- the first end wins: of several concurrent ones exactly one is stored; the same end may be
  repeated, for example after a lost answer;
- a wait costs one entry in a dict: no task, no connection. All waits of this process share one slow
  poll. A hint from the pod where the deferred ended shortens the wait; without the hint the poll
  finds it;
- no log line and no error contains a token.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.batching import Batcher
from sidecar.execution.authority import Authorities
from sidecar.hints import Hints
from sidecar.model.deferred import (
    Deferred,
    DeferredState,
    Ending,
    check_create,
    completed,
    failed,
    id_of,
)
from sidecar.model.errors import (
    AlreadyExists,
    DeadlineExceeded,
    Fenced,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    SidecarError,
)
from sidecar.model.run import RunRef

log = structlog.get_logger()

TOPIC = "deferreds"
WAIT_SECONDS_MAX = 60.0
WAITS_MAX = 10_000
POLL_SECONDS = 5.0
_RETRY_SECONDS = 1.0  # after a poll that failed
_ASKED_MAX = 1000  # ids per statement
_ANSWERED_MAX = 16  # per statement: each may carry 1 MiB
_READ_MAX = 32  # likewise
_PRUNED_MAX = 500  # per statement
_UNKNOWN = "there is no deferred with this token, or it was pruned"
_TICK_SECONDS = 0.01  # the database's clock and ours may differ a little at the expiry


class Store(Protocol):
    """The table of deferreds. All methods raise StoreUnavailable while Postgres is down."""

    async def create(self, name: str, run: RunRef | None, ttl_seconds: float | None) -> str: ...
    async def get(self, ids: Sequence[bytes]) -> Sequence[Deferred | SidecarError | None]:
        """The deferred, an error or None for each of `ids`, in their order."""
        ...

    async def ended(self, ids: Sequence[bytes], limit: int) -> list[Deferred]:
        """Those of `ids` that are no longer pending, at most `limit`."""
        ...

    async def end(self, id_: bytes, ending: Ending) -> Deferred | None:
        """The deferred, ended by this call or before; None if it does not exist."""
        ...

    async def prune(self, older_than_seconds: float, limit: int) -> int: ...


class Deferreds:
    """Create, Await, Complete, Fail and Get, from any pod; `run` ends waits."""

    def __init__(
        self,
        store: Store,
        hints: Hints,
        *,
        authorities: Authorities | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._store = store
        self._hints = hints
        self._authorities = authorities or Authorities()
        self._poll_seconds = poll_seconds
        self._waits = _Waits()
        self._get_batch = Batcher(store.get, size=_READ_MAX)

    async def create(
        self, name: str, *, run: RunRef | None = None, ttl_seconds: float | None = None
    ) -> str:
        """The token of the deferred of this name, created now or before."""
        check_create(name, run, ttl_seconds)
        try:
            return await self._store.create(name, run, ttl_seconds)
        except Fenced:
            metrics.FENCED_WRITES.labels("deferred").inc()
            if run:
                self._authorities.write_refused(run.epoch)
            raise

    async def get(self, token: str) -> Deferred:
        return await self._read(id_of(token))

    async def wait(self, token: str, *, seconds: float = WAIT_SECONDS_MAX) -> Deferred:
        """The deferred once it is no longer pending; DeadlineExceeded after `seconds`."""
        id_ = id_of(token)
        if seconds < 0:
            raise InvalidArgument("timeout", "must not be negative")
        now = asyncio.get_running_loop().time
        deadline = now() + min(seconds, WAIT_SECONDS_MAX)
        # Registered before the read: an end is seen either by the read or by the entry.
        with self._waits.entered(id_) as ended:
            while True:
                deferred = await self._read(id_)
                if deferred.state is not DeferredState.PENDING:
                    return deferred
                left = deadline - now()
                if left <= 0:
                    raise DeadlineExceeded(f"{deferred.name} is still pending: await it again")
                if deferred.expires_in_seconds is not None:
                    left = min(left, max(deferred.expires_in_seconds, _TICK_SECONDS))
                await asyncio.wait({ended}, timeout=left)
                if ended.done():
                    return ended.result()

    async def complete(self, token: str, value: bytes) -> Deferred:
        return await self._end(id_of(token), completed(value))

    async def fail(self, token: str, error: str) -> Deferred:
        return await self._end(id_of(token), failed(error))

    async def prune(self, older_than_seconds: float) -> int:
        """Delete deferreds that ended that long ago; returns how many. Any pod may call it."""
        total = 0
        while True:
            pruned = await self._store.prune(older_than_seconds, _PRUNED_MAX)
            total += pruned
            if pruned < _PRUNED_MAX:
                return total

    async def run(self) -> None:
        """End waits after a hint, and by a poll every few seconds."""
        now = asyncio.get_running_loop().time
        hints = self._hints.subscribe(TOPIC)
        poll_at = now() + self._poll_seconds
        while True:
            await hints.wait(max(0.0, poll_at - now()))
            hinted = hints.details()
            # A hint without an id: the listener reconnected and may have missed hints.
            poll = not hinted or now() >= poll_at
            try:
                await self._answer(self._waits.ids() if poll else _ids(hinted))
            except Exception as error:  # the next attempt may succeed
                unexpected = not isinstance(error, SidecarError)
                reason = type(error).__name__
                log.info(
                    "deferreds_not_read", reason=reason, problem=str(error), exc_info=unexpected
                )
                poll_at = now() + min(_RETRY_SECONDS, self._poll_seconds)
            else:
                poll_at = now() + self._poll_seconds if poll else poll_at

    async def _read(self, id_: bytes) -> Deferred:
        deferred = await self._get_batch(id_)
        if isinstance(deferred, SidecarError):
            raise deferred
        if deferred is None:
            raise NotFound(_UNKNOWN)
        return deferred

    async def _end(self, id_: bytes, ending: Ending) -> Deferred:
        deferred = await self._store.end(id_, ending)
        if deferred is None:
            raise NotFound(_UNKNOWN)
        # Also if it had ended before: the first hint may have been lost with the first answer.
        self._hints.notify(TOPIC, id_.hex())
        if not deferred.ended_as(ending):
            raise AlreadyExists(_already_ended(deferred), deferred.value)
        return deferred

    async def _answer(self, ids: Iterable[bytes]) -> None:
        """Read those of `ids` that have waits, and end the waits for ended deferreds."""
        open_ = [id_ for id_ in ids if id_ in self._waits]
        while open_:
            ended = await self._store.ended(open_[:_ASKED_MAX], _ANSWERED_MAX)
            for deferred in ended:
                self._waits.answer(deferred)
            if len(ended) < _ANSWERED_MAX:
                del open_[:_ASKED_MAX]
            else:
                answered = {deferred.id for deferred in ended}
                open_ = [id_ for id_ in open_ if id_ not in answered]


@dataclass(slots=True, eq=False)
class _Entry:
    ended: asyncio.Future[Deferred] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    waiting: int = 0


class _Waits:
    """The waits of this process: one entry per deferred, shared by all its waits."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}
        self._count = 0

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._entries

    def ids(self) -> list[bytes]:
        return list(self._entries)

    @contextmanager
    def entered(self, id_: bytes) -> Iterator[asyncio.Future[Deferred]]:
        """A future that is done when the deferred has ended."""
        if self._count >= WAITS_MAX:
            raise LimitExceeded(f"{WAITS_MAX} calls already wait for deferreds in this sidecar")
        entry = self._entries.setdefault(id_, _Entry())
        entry.waiting += 1
        self._count += 1
        try:
            yield entry.ended
        finally:
            self._count -= 1
            entry.waiting -= 1
            if not entry.waiting and self._entries.get(id_) is entry:
                del self._entries[id_]

    def answer(self, deferred: Deferred) -> None:
        entry = self._entries.pop(deferred.id, None)
        if entry is not None:
            entry.ended.set_result(deferred)


def _ids(hinted: Iterable[str]) -> Iterator[bytes]:
    for detail in hinted:
        with suppress(ValueError):  # any role that can NOTIFY can send anything
            yield bytes.fromhex(detail)


def _already_ended(deferred: Deferred) -> str:
    match deferred.state:
        case DeferredState.COMPLETED:
            return f"{deferred.name} is already completed with another result"
        case DeferredState.FAILED:
            return f"{deferred.name} has already failed with another result"
        case _:
            return f"{deferred.name} has already expired"
