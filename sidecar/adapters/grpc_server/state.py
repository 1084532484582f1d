"""The State service: messages in, messages out; every rule is in the steps behind it."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Any, Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from sidecar._proto.baton.v1 import runs_pb2, state_pb2, state_pb2_grpc
from sidecar.adapters.grpc_server.paging import checked_size
from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef
from sidecar.model.state_words import Delete, Page, Put, Record

_KNOWN_CONSISTENCIES = frozenset(state_pb2.Consistency.values())


class Store(Protocol):
    async def get(self, key: str, *, strong: bool = False) -> Record: ...
    async def has(self, key: str) -> bool: ...
    async def put(self, put: Put) -> Record: ...
    async def delete(self, delete: Delete) -> bool: ...
    async def list_page(self, prefix: str, *, after: str, limit: int) -> Page: ...
    async def size(self, prefix: str) -> int: ...
    async def clear(self, prefix: str) -> int: ...


class Watch(Protocol):
    def changes(
        self, prefix: str, after_version: int | None
    ) -> AsyncGenerator[Record | None, None]:
        """None once the watch is in place, then a record per change."""
        ...


class StateService(state_pb2_grpc.StateServicer):
    def __init__(self, store: Store, watch: Watch) -> None:
        self._store = store
        self._watch = watch

    async def Get(
        self, request: state_pb2.StateGetRequest, context: Any
    ) -> state_pb2.StateGetResponse:
        if request.consistency not in _KNOWN_CONSISTENCIES:
            raise InvalidArgument("consistency", "is not known")
        strong = request.consistency == state_pb2.CONSISTENCY_STRONG
        record = await self._store.get(request.key, strong=strong)
        return state_pb2.StateGetResponse(entry=_entry(record))

    async def Put(
        self, request: state_pb2.StatePutRequest, context: Any
    ) -> state_pb2.StatePutResponse:
        put = Put(
            key=request.key,
            value=request.value,
            expected_version=_optional(request, "expected_version"),
            ttl_seconds=_seconds("ttl", request.ttl) if request.HasField("ttl") else None,
            run=_run(request.run) if request.HasField("run") else None,
            request_id=request.request_id,
        )
        return state_pb2.StatePutResponse(entry=_entry(await self._store.put(put)))

    async def Delete(
        self, request: state_pb2.StateDeleteRequest, context: Any
    ) -> state_pb2.StateDeleteResponse:
        delete = Delete(
            key=request.key,
            expected_version=_optional(request, "expected_version"),
            run=_run(request.run) if request.HasField("run") else None,
        )
        return state_pb2.StateDeleteResponse(deleted=await self._store.delete(delete))

    async def Has(
        self, request: state_pb2.StateHasRequest, context: Any
    ) -> state_pb2.StateHasResponse:
        return state_pb2.StateHasResponse(exists=await self._store.has(request.key))

    async def List(
        self, request: state_pb2.StateListRequest, context: Any
    ) -> state_pb2.StateListResponse:
        page = await self._store.list_page(
            request.prefix,
            after=_key_of(request.page_token),
            limit=checked_size(request.page_size),
        )
        token = _token_of(page.records[-1].key) if page.more else ""
        entries = [_entry(record) for record in page.records]
        return state_pb2.StateListResponse(entries=entries, next_page_token=token)

    async def Size(
        self, request: state_pb2.StateSizeRequest, context: Any
    ) -> state_pb2.StateSizeResponse:
        return state_pb2.StateSizeResponse(size=await self._store.size(request.prefix))

    async def Clear(
        self, request: state_pb2.StateClearRequest, context: Any
    ) -> state_pb2.StateClearResponse:
        return state_pb2.StateClearResponse(deleted=await self._store.clear(request.prefix))

    async def Watch(
        self, request: state_pb2.StateWatchRequest, context: Any
    ) -> AsyncIterator[state_pb2.StateWatchResponse]:
        changes = self._watch.changes(request.prefix, _optional(request, "after_version"))
        async with aclosing(changes):
            async for record in changes:
                if record is None:
                    # The caller may write now: nothing it writes will be missed.
                    await context.send_initial_metadata(())
                elif record.value is None:
                    yield state_pb2.StateWatchResponse(deleted=_entry(record))
                else:
                    yield state_pb2.StateWatchResponse(put=_entry(record))


def _entry(record: Record) -> state_pb2.Entry:
    entry = state_pb2.Entry(
        key=record.key,
        value=record.value or b"",
        version=record.version,
        updated_at=_timestamp(record.updated_at),
    )
    if record.expires_at is not None:
        entry.expires_at.CopyFrom(_timestamp(record.expires_at))
    return entry


def _timestamp(at: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(at)
    return timestamp


def _optional(request: Any, field: str) -> int | None:
    return int(getattr(request, field)) if request.HasField(field) else None


def _seconds(field: str, duration: Duration) -> float:
    # The well-known type is checked only in JSON.
    if abs(duration.nanos) > 999_999_999:
        raise InvalidArgument(field, "is not a duration")
    return duration.seconds + duration.nanos / 1e9


def _run(run: runs_pb2.RunRef) -> RunRef:
    return RunRef(run_id=run.run_id, attempt=run.attempt, epoch=run.epoch)


def _token_of(key: str) -> str:
    return urlsafe_b64encode(key.encode()).decode()


def _key_of(token: str) -> str:
    try:
        key = b64decode(token, altchars=b"-_", validate=True).decode()
    except ValueError:
        key = "\0"
    if "\0" in key:
        raise InvalidArgument("page_token", "is not one that was given out")
    return key
