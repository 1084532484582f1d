"""The State service: converts messages; the rules are in `sidecar/state/`."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

from sidecar._proto.baton.v1 import state_pb2, state_pb2_grpc
from sidecar.adapters.convert import run_of, seconds_of, timestamp
from sidecar.adapters.grpc_server.paging import checked_size, position_of, token_of
from sidecar.model.errors import InvalidArgument
from sidecar.model.state_types import Delete, Page, Put, Record

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
        """Yields None once the watch is established, then a record per change."""
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
            ttl_seconds=seconds_of(request, "ttl"),
            run=run_of(request),
            request_id=request.request_id,
        )
        return state_pb2.StatePutResponse(entry=_entry(await self._store.put(put)))

    async def Delete(
        self, request: state_pb2.StateDeleteRequest, context: Any
    ) -> state_pb2.StateDeleteResponse:
        delete = Delete(
            key=request.key,
            expected_version=_optional(request, "expected_version"),
            run=run_of(request),
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
            after=position_of(request.page_token, "state", request.prefix),
            limit=checked_size(request.page_size),
        )
        last = page.records[-1].key if page.more else ""
        token = token_of(last, "state", request.prefix)
        entries = [_entry(record) for record in page.records]
        if request.keys_only:
            for entry in entries:
                entry.ClearField("value")
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
                    # From now on the watch sees whatever the caller writes.
                    await context.send_initial_metadata(())
                elif record.value is None:
                    yield state_pb2.StateWatchResponse(deleted=_entry(record))
                else:
                    yield state_pb2.StateWatchResponse(put=_entry(record))


def _entry(record: Record) -> state_pb2.Entry:
    return state_pb2.Entry(
        key=record.key,
        value=record.value or b"",
        version=record.version,
        updated_at=timestamp(record.updated_at),
        expires_at=timestamp(record.expires_at),
    )


def _optional(request: Any, field: str) -> int | None:
    return int(getattr(request, field)) if request.HasField(field) else None
