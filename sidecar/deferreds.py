"""Durable promises: made by a run or by anybody, awaited here, ended by whoever holds the token.

Guarantees:
- the first end stands: of several at once exactly one wins; the same end again is fine, so that an
  end whose answer was lost may simply be repeated;
- a wait costs one entry in a table: no task, no connection. All waits of this process share one
  slow poll. A hint from the pod where the deferred ended cuts the wait short; a lost one costs at
  most the poll;
- a token is in no log and no error.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.batching import Batcher
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
from sidecar.model.run import Refused, RunRef

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
_TICK_SECONDS = 0.01  # the database's clock and ours need not agree on the very moment of expiry


class Store(Protocol):
    """Postgres. All raise StoreUnavailable while it is away."""

    async def create(self, name: str, run: RunRef | None, ttl_seconds: float | None) -> str: ...
    async def get(self, ids: Sequence[bytes]) -> Sequence[Deferred | SidecarError | None]:
        """Each of `ids` as it is, in their order."""
        ...

    async def ended(self, ids: Sequence[bytes], limit: int) -> list[Deferred]:
        """Those of `ids` that are no longer pending, at most `limit`."""
        ...

    async def end(self, id_: bytes, ending: Ending) -> Deferred | None:
        """As it is now, if it was pending; None if it was not, or is not known."""
        ...

    async def prune(self, older_than_seconds: float, limit: int) -> int: ...


class Subscription(Protocol):
    async def wait(self, timeout: float | None = None) -> bool: ...
    def details(self) -> list[str]: ...


class Hints(Protocol):
    def notify(self, topic: str, detail: str = "") -> None: ...
    def subscribe(self, topic: str) -> Subscription: ...


class Deferreds:
    """Create, Await, Complete, Fail and Get, from any pod; `run` serves those who wait."""

    def __init__(
        self,
        store: Store,
        hints: Hints,
        *,
        refused: Refused = lambda run: None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._store = store
        self._hints = hints
        self._refused = refused
        self._poll_seconds = poll_seconds
        self._waits = _Waits()
        self._get_batch = Batcher(store.get, size=_READ_MAX)

    async def create(
        self, name: str, *, run: RunRef | None = None, ttl_seconds: float | None = None
    ) -> str:
        """The token of the deferred of this name, made now or before."""
        check_create(name, run, ttl_seconds)
        try:
            return await self._store.create(name, run, ttl_seconds)
        except Fenced:
            metrics.FENCED_WRITES.labels("deferred").inc()
            if run:
                self._refused(run)
            raise

    async def get(self, token: str) -> Deferred:
        return await self._read(id_of(token))

    async def wait(self, token: str, *, seconds: float = WAIT_SECONDS_MAX) -> Deferred:
        """The deferred once it is no longer pending; DeadlineExceeded if that takes too long."""
        id_ = id_of(token)
        if seconds < 0:
            raise InvalidArgument("timeout", "must not be negative")
        now = asyncio.get_running_loop().time
        deadline = now() + min(seconds, WAIT_SECONDS_MAX)
        # Registered before it is read: an end falls either before the read or onto the entry.
        with self._waits.entered(id_) as ended:
            while True:
                deferred = await self._read(id_)
                if deferred.state is not DeferredState.PENDING:
                    return deferred
                left = deadline - now()
                if left <= 0:
                    raise DeadlineExceeded(f"{deferred.name} is still pending: ask again")
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
        """Forget what ended that long ago; how many there were. Any pod may do it at any time."""
        total = 0
        while True:
            pruned = await self._store.prune(older_than_seconds, _PRUNED_MAX)
            total += pruned
            if pruned < _PRUNED_MAX:
                return total

    async def run(self) -> None:
        """Answer waits when a hint says so, and every few seconds without one."""
        now = asyncio.get_running_loop().time
        hints = self._hints.subscribe(TOPIC)
        poll_at = now() + self._poll_seconds
        while True:
            await hints.wait(max(0.0, poll_at - now()))
            hinted = hints.details()
            # A hint without an id: the listener was away and may have missed any.
            poll = not hinted or now() >= poll_at
            try:
                await self._answer(self._waits.ids() if poll else _ids(hinted))
            except Exception as error:  # whatever it was, the next try may succeed
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
            raise NotFound("there is no deferred with this token, or no longer")
        return deferred

    async def _end(self, id_: bytes, ending: Ending) -> Deferred:
        deferred = await self._store.end(id_, ending) or await self._read(id_)
        # Also if it had ended before: the answer, and with it the hint, may have been lost.
        self._hints.notify(TOPIC, id_.hex())
        if not deferred.ended_as(ending):
            raise AlreadyExists(_standing(deferred), deferred.value)
        return deferred

    async def _answer(self, ids: Iterable[bytes]) -> None:
        """Look at those of `ids` that are waited for, and wake whoever waits for an ended one."""
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
    """Who waits for what in this process: one entry per deferred, however many wait for it."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}
        self._count = 0

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._entries

    def ids(self) -> list[bytes]:
        return list(self._entries)

    @contextmanager
    def entered(self, id_: bytes) -> Iterator[asyncio.Future[Deferred]]:
        """What becomes done when the deferred has ended."""
        if self._count >= WAITS_MAX:
            raise LimitExceeded(f"{WAITS_MAX} calls wait for deferreds in this sidecar already")
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
        with suppress(ValueError):  # whoever can NOTIFY can send anything
            yield bytes.fromhex(detail)


def _standing(deferred: Deferred) -> str:
    match deferred.state:
        case DeferredState.COMPLETED:
            return f"{deferred.name} is completed already: its value stands"
        case DeferredState.FAILED:
            return f"{deferred.name} has failed already: its error stands"
        case _:
            return f"{deferred.name} has expired already"
