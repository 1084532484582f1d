"""Deferreds and ids of the fake."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from datetime import UTC, datetime, timedelta

import grpc

from baton.testing._common import Call, accepted, not_found, now, require
from baton.testing._runs import RunBook
from baton.v1 import deferreds_pb2 as pb
from baton.v1 import ids_pb2
from baton.v1.deferreds_pb2_grpc import DeferredsServicer
from baton.v1.ids_pb2_grpc import IdsServicer

_EPOCH_MS = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1000)


class FakeDeferreds(DeferredsServicer):
    """Durable promises, for as long as the fake lives; the first completion stands."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._tokens: dict[tuple[int, str], str] = {}
        self._deferreds: dict[str, pb.Deferred] = {}
        self._changed = asyncio.Condition()

    def all(self) -> list[pb.Deferred]:
        """Every deferred, oldest first."""
        return list(self._deferreds.values())

    async def Create(
        self, request: pb.DeferredsCreateRequest, call: Call
    ) -> pb.DeferredsCreateResponse:
        if request.HasField("run"):
            run = request.run
            await accepted(call, lambda: self._book.live(run))
        identity = (request.run.run_id, request.name)
        if identity not in self._tokens:
            token = self._tokens[identity] = secrets.token_urlsafe(24)
            ttl = request.ttl.ToTimedelta() if request.HasField("ttl") else None
            self._deferreds[token] = pb.Deferred(
                token=token,
                name=request.name,
                run_id=request.run.run_id,
                state=pb.DEFERRED_STATE_PENDING,
                created_at=now(),
                expires_at=now() + ttl if ttl else None,
            )
        return pb.DeferredsCreateResponse(token=self._tokens[identity])

    async def Await(
        self, request: pb.DeferredsAwaitRequest, call: Call
    ) -> pb.DeferredsAwaitResponse:
        asked = request.timeout.ToTimedelta().total_seconds()
        seconds = min(asked, 60.0) if request.HasField("timeout") else 60.0
        deferred = await self._known(request.token, call)
        until = asyncio.get_running_loop().time() + seconds
        while deferred.state == pb.DEFERRED_STATE_PENDING:
            left = until - asyncio.get_running_loop().time()
            await require(call, left > 0, grpc.StatusCode.DEADLINE_EXCEEDED, "still pending")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, _until_expiry(deferred))), self._changed:
                    await self._changed.wait()
            deferred = await self._known(request.token, call)
        return pb.DeferredsAwaitResponse(deferred=deferred)

    async def Complete(
        self, request: pb.DeferredsCompleteRequest, call: Call
    ) -> pb.DeferredsCompleteResponse:
        end = pb.Deferred(state=pb.DEFERRED_STATE_COMPLETED, value=request.value)
        return pb.DeferredsCompleteResponse(deferred=await self._ended(request.token, end, call))

    async def Fail(self, request: pb.DeferredsFailRequest, call: Call) -> pb.DeferredsFailResponse:
        end = pb.Deferred(state=pb.DEFERRED_STATE_FAILED, error=request.error)
        return pb.DeferredsFailResponse(deferred=await self._ended(request.token, end, call))

    async def Get(self, request: pb.DeferredsGetRequest, call: Call) -> pb.DeferredsGetResponse:
        return pb.DeferredsGetResponse(deferred=await self._known(request.token, call))

    async def _ended(self, token: str, end: pb.Deferred, call: Call) -> pb.Deferred:
        deferred = await self._known(token, call)
        if deferred.state == pb.DEFERRED_STATE_PENDING:
            deferred.MergeFrom(end)
            deferred.finished_at.GetCurrentTime()
            async with self._changed:
                self._changed.notify_all()
        same = (deferred.state, deferred.value, deferred.error) == (end.state, end.value, end.error)
        await require(call, same, grpc.StatusCode.ALREADY_EXISTS, "it has ended otherwise")
        return deferred

    async def _known(self, token: str, call: Call) -> pb.Deferred:
        deferred = self._deferreds.get(token) or await not_found(call, "this deferred")
        if deferred.state == pb.DEFERRED_STATE_PENDING and _until_expiry(deferred) <= 0:
            deferred.state = pb.DEFERRED_STATE_EXPIRED
            deferred.finished_at.CopyFrom(deferred.expires_at)
        return deferred


def _until_expiry(deferred: pb.Deferred) -> float:
    if not deferred.HasField("expires_at"):
        return float("inf")
    return (deferred.expires_at.ToDatetime(tzinfo=UTC) - now()).total_seconds()


class FakeIds(IdsServicer):
    """Rising ids of machine 0."""

    def __init__(self) -> None:
        self._last = 0

    async def Generate(
        self, request: ids_pb2.IdsGenerateRequest, call: Call
    ) -> ids_pb2.IdsGenerateResponse:
        allowed = request.count <= 10_000
        await require(call, allowed, grpc.StatusCode.INVALID_ARGUMENT, "count: at most 10,000")
        return ids_pb2.IdsGenerateResponse(ids=[self._next() for _ in range(request.count or 1)])

    async def Decompose(
        self, request: ids_pb2.IdsDecomposeRequest, call: Call
    ) -> ids_pb2.IdsDecomposeResponse:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(
            milliseconds=(request.id >> 22) + _EPOCH_MS
        )
        return ids_pb2.IdsDecomposeResponse(
            timestamp=moment, machine_id=request.id >> 12 & 0x3FF, sequence=request.id & 0xFFF
        )

    def _next(self) -> int:
        fresh = (time.time_ns() // 1_000_000 - _EPOCH_MS) << 22
        used_up = self._last & 0xFFF == 0xFFF  # go on in the next millisecond
        self._last = max(fresh, ((self._last >> 22) + 1) << 22 if used_up else self._last + 1)
        return self._last
