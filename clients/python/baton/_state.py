"""The key-value data of the cluster. A write is durable before it is acknowledged.

Values are bytes, or anything that JSON can say. Writes carry a request id of their own, so that
one whose answer was lost is asked again without being done twice.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc

from baton._connection import Connection, backoff_seconds
from baton._paging import pages
from baton._values import from_json, to_bytes
from baton.errors import BatonError, Conflict, NotFound
from baton.v1 import state_pb2 as pb
from baton.v1.state_pb2_grpc import StateStub

MODIFY_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value; `version` rises with every write and never comes back."""

    key: str
    value: bytes
    version: int
    updated_at: datetime
    expires_at: datetime | None

    def json(self, default: Any = None) -> Any:
        """The value as JSON; `default` if it is empty."""
        return from_json(self.value, default)


@dataclass(frozen=True, slots=True)
class Change:
    """One change told by `watch`; of a deleted entry only key, version and time are known."""

    entry: Entry
    deleted: bool


class State:
    """Reads and writes entries; works on any pod."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, key: str, *, strong: bool = False) -> Entry | None:
        """One entry, None if there is none. `strong`: sees every write acknowledged before."""
        consistency = pb.CONSISTENCY_STRONG if strong else pb.CONSISTENCY_CACHED
        request = pb.StateGetRequest(key=key, consistency=consistency)
        try:
            return _entry((await self._connection.call(self._stub.Get, request)).entry)
        except NotFound:
            return None

    async def put(
        self,
        key: str,
        value: Any,
        *,
        expected_version: int | None = None,
        ttl: timedelta | None = None,
        request_id: str = "",
    ) -> Entry:
        """Writes one entry. `expected_version` (0: none yet) not met: `Conflict`, no change."""
        request = pb.StatePutRequest(
            key=key,
            value=to_bytes(value),
            expected_version=expected_version,
            ttl=ttl,
            request_id=request_id or uuid.uuid4().hex,
        )
        return _entry((await self._connection.call(self._stub.Put, request)).entry)

    async def modify(
        self, key: str, change: Callable[[Entry | None], Any], *, ttl: timedelta | None = None
    ) -> Entry:
        """Replaces an entry by what `change` makes of it, atomically.

        `change` may be called several times, once for each writer that was faster.
        """
        waits = backoff_seconds(first=0.01, longest=0.25)
        for _ in range(MODIFY_ROUNDS):
            before = await self.get(key, strong=True)
            try:
                return await self.put(
                    key,
                    change(before),
                    expected_version=before.version if before else 0,
                    ttl=ttl,
                )
            except Conflict:
                await asyncio.sleep(next(waits))
        raise Conflict(f"{key}: {MODIFY_ROUNDS} times another writer was faster")

    async def delete(self, key: str, *, expected_version: int | None = None) -> bool:
        """Deletes one entry; whether there was one."""
        request = pb.StateDeleteRequest(key=key, expected_version=expected_version)
        response = await self._connection.call(self._stub.Delete, request, repeatable=False)
        return response.deleted

    async def has(self, key: str) -> bool:
        """Whether there is an entry."""
        request = pb.StateHasRequest(key=key)
        return (await self._connection.call(self._stub.Has, request)).exists

    async def list(self, prefix: str = "") -> AsyncIterator[Entry]:
        """The entries whose keys begin with a prefix, by key."""
        request = pb.StateListRequest(prefix=prefix)
        async for page in pages(self._connection, self._stub.List, request):
            for entry in page.entries:
                yield _entry(entry)

    async def size(self, prefix: str = "") -> int:
        """How many entries there are whose keys begin with a prefix."""
        request = pb.StateSizeRequest(prefix=prefix)
        return (await self._connection.call(self._stub.Size, request)).size

    async def clear(self, prefix: str = "") -> int:
        """Deletes all entries whose keys begin with a prefix, except owned keys; how many."""
        request = pb.StateClearRequest(prefix=prefix)
        response = await self._connection.call(self._stub.Clear, request, repeatable=False)
        return response.deleted

    async def watch(
        self, prefix: str = "", *, after_version: int | None = None
    ) -> AsyncGenerator[Change, None]:
        """The changes of entries, deletions included; a change may be told twice.

        `after_version` 0 begins with every entry there is: the way to keep a full copy. None: only
        what happens from now on. A broken stream is opened again after the last version seen.
        Before any is known that would lose changes silently, so `Unavailable` is raised instead.
        """
        waits = backoff_seconds()
        while True:
            request = pb.StateWatchRequest(prefix=prefix, after_version=after_version)
            try:
                async with aclosing(self._connection.stream(self._stub.Watch, request)) as stream:
                    async for message in stream:
                        waits = backoff_seconds()
                        change = _change(message)
                        after_version = max(after_version or 0, change.entry.version)
                        yield change
            except BatonError as error:  # also one that is typed, as StateLoadFailed
                if error.code is not grpc.StatusCode.UNAVAILABLE or after_version is None:
                    raise
            await asyncio.sleep(next(waits))

    @property
    def _stub(self) -> StateStub:
        return self._connection.stub(StateStub)


def _change(message: pb.StateWatchResponse) -> Change:
    deleted = message.WhichOneof("change") == "deleted"
    return Change(_entry(message.deleted if deleted else message.put), deleted)


def _entry(entry: pb.Entry) -> Entry:
    expires = entry.expires_at.ToDatetime(tzinfo=UTC) if entry.HasField("expires_at") else None
    updated = entry.updated_at.ToDatetime(tzinfo=UTC)
    return Entry(entry.key, entry.value, entry.version, updated, expires)
