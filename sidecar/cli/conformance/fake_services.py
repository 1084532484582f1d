"""State, runs, deferreds and ids for one process and one app, without a database.

They implement the sidecar's real gRPC services, so an app under test gets the real messages and
errors. A call on behalf of a run that is not live is refused and recorded.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sidecar.adapters.clock import boottime, utc_now
from sidecar.model.deferred import (
    Deferred,
    DeferredState,
    Ending,
    check_create,
    completed,
    failed,
    id_of,
    token_of,
)
from sidecar.model.errors import (
    AlreadyExists,
    Conflict,
    DeadlineExceeded,
    FailedPrecondition,
    Fenced,
    NotFound,
)
from sidecar.model.run import Checkpoint, RunRef
from sidecar.model.run_records import RunFilter, RunRecord
from sidecar.model.snowflake import EPOCH_UNIX_MS, Lease, Window
from sidecar.model.state_types import Delete, Page, Put, Record

_OWNED = ("singleton-state:", "schedule-state:")
_WAIT_SECONDS_MAX = 60.0


@dataclass
class LiveRuns:
    """Which attempts are live, what they stored, and when they made their last call."""

    _live: dict[int, RunRef] = field(default_factory=dict)
    _checkpoints: dict[int, list[Checkpoint]] = field(default_factory=dict)
    _heard_at: dict[RunRef, float] = field(default_factory=dict)

    def begin(self, run: RunRef) -> None:
        self._live[run.run_id] = run

    def end(self, run: RunRef) -> None:
        self._live.pop(run.run_id, None)

    def stored(self, run_id: int) -> tuple[Checkpoint, ...]:
        return tuple(self._checkpoints.get(run_id, ()))

    def heard_at(self, run: RunRef) -> float:
        """When a call was last made on behalf of that attempt (boottime); 0: never."""
        return self._heard_at.get(run, 0.0)

    def check(self, run: RunRef | None) -> None:
        """Raise Fenced unless the attempt is live; without one there is nothing to check."""
        if run is None:
            return
        self._heard_at[run] = boottime()
        if self._live.get(run.run_id) != run:
            raise Fenced(f"run {run.run_id}, attempt {run.attempt}, is not live")

    # The port of the Runs service.

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> None:
        self.check(run)
        steps = self._checkpoints.setdefault(run.run_id, [])
        steps[:] = [stored for stored in steps if stored.step != step] + [Checkpoint(step, value)]

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> None:
        self.check(run)

    async def get(self, run_id: int) -> RunRecord:
        raise NotFound(f"run_id: the conformance suite keeps no record of run {run_id}")

    async def page(
        self, wanted: RunFilter, *, before: int | None, limit: int
    ) -> Sequence[RunRecord]:
        return ()

    async def cancel(self, run_id: int, note: str) -> RunRecord:
        return await self.get(run_id)

    async def retry(self, run_id: int) -> RunRecord:
        return await self.get(run_id)


class MemoryState:
    """Keys and values with increasing versions; expiry by this machine's clock."""

    def __init__(self, runs: LiveRuns) -> None:
        self._runs = runs
        self._records: dict[str, Record] = {}  # tombstones included
        self._changed = asyncio.Condition()

    async def get(self, key: str, *, strong: bool = False) -> Record:
        record = self._found(key)
        if record is None:
            raise NotFound(f"key: there is no entry {key!r}")
        return record

    async def has(self, key: str) -> bool:
        return self._found(key) is not None

    async def put(self, put: Put) -> Record:
        self._allow(put.key, put.run, put.expected_version)
        now = utc_now()
        expires_at = now + timedelta(seconds=put.ttl_seconds) if put.ttl_seconds else None
        record = Record(put.key, self._next_version(), put.value, now, expires_at)
        await self._store(record)
        return record

    async def delete(self, delete: Delete) -> bool:
        self._allow(delete.key, delete.run, delete.expected_version)
        found = self._found(delete.key)
        if found is not None:
            version = self._next_version()
            await self._store(Record(delete.key, version, None, utc_now()))
        return found is not None

    async def list_page(self, prefix: str, *, after: str, limit: int) -> Page:
        keys = [key for key in self._keys(prefix) if key > after]
        records = [self._records[key] for key in keys[:limit]]
        return Page(records, more=len(keys) > limit)

    async def size(self, prefix: str) -> int:
        return len(self._keys(prefix))

    async def clear(self, prefix: str) -> int:
        keys = [key for key in self._keys(prefix) if not key.startswith(_OWNED)]
        for key in keys:
            await self.delete(Delete(key))
        return len(keys)

    async def changes(
        self, prefix: str, after_version: int | None
    ) -> AsyncGenerator[Record | None, None]:
        """Yields None once the watch is established, then a record per change."""
        newest = max((record.version for record in self._records.values()), default=0)
        seen = newest if after_version is None else after_version
        yield None
        while True:
            async with self._changed:
                fresh = sorted(
                    (r for r in self._records.values() if r.version > seen),
                    key=lambda record: record.version,
                )
                if not fresh:
                    await self._changed.wait()
            for record in fresh:
                seen = record.version
                if record.key.startswith(prefix):
                    yield record

    def _found(self, key: str) -> Record | None:
        record = self._records.get(key)
        gone = record is None or record.value is None or record.expired(utc_now())
        return None if gone else record

    def _keys(self, prefix: str) -> list[str]:
        return sorted(
            key for key in self._records if key.startswith(prefix) and self._found(key) is not None
        )

    def _allow(self, key: str, run: RunRef | None, expected_version: int | None) -> None:
        if key.startswith(_OWNED) and run is None:
            raise FailedPrecondition(f"run: {key!r} is written only by the live run of its owner")
        self._runs.check(run)
        found = self._found(key)
        version = found.version if found else 0
        if expected_version is not None and expected_version != version:
            raise Conflict(f"expected_version: {key!r} has version {version}")

    def _next_version(self) -> int:
        newest = max((record.version for record in self._records.values()), default=0)
        return max(newest + 1, int(utc_now().timestamp() * 1e6))

    async def _store(self, record: Record) -> None:
        async with self._changed:
            self._records[record.key] = record
            self._changed.notify_all()


class MemoryDeferreds:
    """Deferreds by token; the first end wins. None expires: no suite takes that long."""

    def __init__(self, runs: LiveRuns) -> None:
        self._runs = runs
        self._key = os.urandom(32)
        self._tokens: dict[tuple[int, str], str] = {}
        self._deferreds: dict[bytes, Deferred] = {}
        self._changed = asyncio.Condition()

    async def create(self, name: str, *, run: RunRef | None, ttl_seconds: float | None) -> str:
        check_create(name, run, ttl_seconds)
        self._runs.check(run)
        run_id = run.run_id if run else 0
        known = self._tokens.get((run_id, name)) if run else None
        if known is not None:
            return known
        token = token_of(self._key, os.urandom(16))
        pending = Deferred(
            id_of(token), name, run_id, DeferredState.PENDING, b"", "", utc_now(), None, None, None
        )
        self._tokens[run_id, name] = token
        self._deferreds[pending.id] = pending
        return token

    async def get(self, token: str) -> Deferred:
        found = self._deferreds.get(id_of(token))
        if found is None:
            raise NotFound("there is no deferred with this token, or it was pruned")
        return found

    async def wait(self, token: str, *, seconds: float) -> Deferred:
        try:
            async with asyncio.timeout(min(seconds, _WAIT_SECONDS_MAX)), self._changed:
                while (found := await self.get(token)).state is DeferredState.PENDING:
                    await self._changed.wait()
                return found
        except TimeoutError:
            raise DeadlineExceeded("it is still pending: await it again") from None

    async def complete(self, token: str, value: bytes) -> Deferred:
        return await self._end(token, completed(value))

    async def fail(self, token: str, error: str) -> Deferred:
        return await self._end(token, failed(error))

    async def _end(self, token: str, ending: Ending) -> Deferred:
        found = await self.get(token)
        if found.state is DeferredState.PENDING:
            found = replace(
                found,
                state=ending.state,
                value=ending.value,
                error=ending.error,
                finished_at=utc_now(),
            )
            async with self._changed:
                self._deferreds[found.id] = found
                self._changed.notify_all()
        if not found.ended_as(ending):
            raise AlreadyExists(f"{found.name} has already ended with another result", found.value)
        return found


class OneMachine:
    """The lease of a machine number for a cluster of one."""

    async def acquire(self) -> Lease:
        now_ms = int(utc_now().timestamp() * 1000) - EPOCH_UNIX_MS
        return Lease(Window(0, now_ms, now_ms + 3_600_000), now_ms)

    async def renew(self, number: int, used_ms: int) -> Lease | None:
        return await self.acquire()

    async def release(self, number: int, used_ms: int) -> None:
        """Nothing to release: there is no other runner."""
