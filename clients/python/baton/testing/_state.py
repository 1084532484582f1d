"""State of the fake: versions, compare-and-set, time to live, owned keys, and a log to watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, timedelta

import grpc

from baton.testing._common import Call, accepted, not_found, now, page, require
from baton.testing._runs import RunBook
from baton.v1 import runs_pb2
from baton.v1 import state_pb2 as pb
from baton.v1.state_pb2_grpc import StateServicer

_OWNED = ("singleton-state:", "schedule-state:", "job-state:")
_VALUE_BYTES_MAX = 1 << 20


class Store:
    """The entries; every change gets a version above all before it, and a place in the log."""

    def __init__(self) -> None:
        self.log: list[pb.StateWatchResponse] = []
        self.changed = asyncio.Event()  # of the next change
        self._entries: dict[str, pb.Entry] = {}
        self._version = time.time_ns() // 1000

    def get(self, key: str) -> pb.Entry | None:
        """The entry, unless it has expired."""
        entry = self._entries.get(key)
        if entry is None or not entry.HasField("expires_at"):
            return entry
        if entry.expires_at.ToDatetime(tzinfo=UTC) > now():
            return entry
        self.delete(key)
        return None

    def put(self, key: str, value: bytes, ttl: timedelta | None = None) -> pb.Entry:
        """Writes an entry."""
        self._version += 1
        expires_at = now() + ttl if ttl else None
        entry = pb.Entry(
            key=key,
            value=value,
            version=self._version,
            updated_at=now(),
            expires_at=expires_at,
        )
        self._entries[key] = entry
        self._tell(pb.StateWatchResponse(put=entry))
        return entry

    def delete(self, key: str) -> bool:
        """Deletes an entry; whether there was one."""
        if self._entries.pop(key, None) is None:
            return False
        self._version += 1
        gone = pb.Entry(key=key, version=self._version, updated_at=now())
        self._tell(pb.StateWatchResponse(deleted=gone))
        return True

    def find(self, prefix: str) -> list[pb.Entry]:
        """The live entries under a prefix, by key in byte order."""
        keys = sorted((k for k in self._entries if k.startswith(prefix)), key=str.encode)
        return [entry for key in keys if (entry := self.get(key)) is not None]

    def _tell(self, change: pb.StateWatchResponse) -> None:
        self.log.append(change)
        self.changed.set()
        self.changed = asyncio.Event()


class FakeState(StateServicer):
    """Answers from the store."""

    def __init__(self, store: Store, book: RunBook) -> None:
        self._store, self._book = store, book
        self._answered: dict[tuple[str, str], pb.Entry] = {}

    async def Get(self, request: pb.StateGetRequest, call: Call) -> pb.StateGetResponse:
        entry = self._store.get(request.key) or await not_found(call, f"key {request.key}")
        return pb.StateGetResponse(entry=entry)

    async def Put(self, request: pb.StatePutRequest, call: Call) -> pb.StatePutResponse:
        key_bytes = len(request.key.encode())
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        await require(call, 1 <= key_bytes <= 255, invalid, "key: 1 to 255 bytes are allowed")
        fits = len(request.value) <= _VALUE_BYTES_MAX
        await require(call, fits, grpc.StatusCode.RESOURCE_EXHAUSTED, "value: at most 1 MiB")
        ticket = (request.key, request.request_id)
        if request.request_id and ticket in self._answered:
            return pb.StatePutResponse(entry=self._answered[ticket])
        await self._allow(request, call)
        ttl = request.ttl.ToTimedelta() if request.HasField("ttl") else None
        entry = self._answered[ticket] = self._store.put(request.key, request.value, ttl)
        return pb.StatePutResponse(entry=entry)

    async def Delete(self, request: pb.StateDeleteRequest, call: Call) -> pb.StateDeleteResponse:
        await self._allow(request, call)
        deleted = self._store.delete(request.key)
        return pb.StateDeleteResponse(deleted=deleted)

    async def Has(self, request: pb.StateHasRequest, call: Call) -> pb.StateHasResponse:
        return pb.StateHasResponse(exists=self._store.get(request.key) is not None)

    async def List(self, request: pb.StateListRequest, call: Call) -> pb.StateListResponse:
        entries, token = page(self._store.find(request.prefix), request)
        return pb.StateListResponse(entries=entries, next_page_token=token)

    async def Size(self, request: pb.StateSizeRequest, call: Call) -> pb.StateSizeResponse:
        return pb.StateSizeResponse(size=len(self._store.find(request.prefix)))

    async def Clear(self, request: pb.StateClearRequest, call: Call) -> pb.StateClearResponse:
        found = [e.key for e in self._store.find(request.prefix) if not e.key.startswith(_OWNED)]
        for key in found:
            self._store.delete(key)
        return pb.StateClearResponse(deleted=len(found))

    async def Watch(
        self, request: pb.StateWatchRequest, call: Call
    ) -> AsyncIterator[pb.StateWatchResponse]:
        told = 0 if request.HasField("after_version") else len(self._store.log)
        while True:
            for change in self._store.log[told:]:
                told += 1
                entry = change.put if change.HasField("put") else change.deleted
                if entry.key.startswith(request.prefix) and entry.version > request.after_version:
                    yield change
            await self._more_than(told)

    async def _allow(self, request: pb.StatePutRequest | pb.StateDeleteRequest, call: Call) -> None:
        """Owned keys need their live run; a version that is expected must be there."""
        denied = grpc.StatusCode.FAILED_PRECONDITION
        if request.HasField("run"):
            run = request.run
            record = await accepted(call, lambda: self._book.live(run))
            own = request.key in (owned_key(record.run), record.state_key)
            free = not request.key.startswith(_OWNED)
            await require(call, own or free, denied, f"{request.key} belongs to another")
        elif request.key.startswith(_OWNED):
            await require(call, False, denied, f"{request.key} is written by its run only")
        if request.HasField("expected_version"):
            entry = self._store.get(request.key)
            same = request.expected_version == (entry.version if entry else 0)
            await require(call, same, grpc.StatusCode.ABORTED, "it has another version")

    async def _more_than(self, told: int) -> None:
        while len(self._store.log) <= told:
            await self._store.changed.wait()


def owned_key(run: runs_pb2.Run) -> str:
    """The key of the state that a run owns."""
    return f"{entity_type(run)}-state:{run.name}"


def entity_type(run: runs_pb2.Run) -> str:
    """What a run belongs to."""
    return "singleton" if run.kind == runs_pb2.RUN_KIND_SINGLETON else "schedule"
