"""Leadership of the fake: Watch renews about once a second while `Terms.renewing`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import grpc

from baton.testing._common import Call, Terms, not_found, page, require
from baton.v1 import leadership_pb2 as pb
from baton.v1.leadership_pb2_grpc import LeadershipServicer

RENEWAL_SECONDS = 1.0


class FakeLeadership(LeadershipServicer):
    """Answers from the terms; `hand_over` begins what Resign asks for."""

    def __init__(self, terms: Terms, hand_over: Callable[[str], None]) -> None:
        self._terms, self._hand_over = terms, hand_over
        self.watchers = 0  # Watch calls so far

    async def Get(self, request: pb.LeadershipGetRequest, call: Call) -> pb.LeadershipGetResponse:
        await self._thawed()
        group = await self._known(request.group, call)
        return pb.LeadershipGetResponse(leader=self._terms.leader(group))

    async def List(
        self, request: pb.LeadershipListRequest, call: Call
    ) -> pb.LeadershipListResponse:
        groups, token = page(sorted(self._terms.groups), request)
        leaders = [self._terms.leader(group) for group in groups]
        return pb.LeadershipListResponse(leaders=leaders, next_page_token=token)

    async def Resign(
        self, request: pb.LeadershipResignRequest, call: Call
    ) -> pb.LeadershipResignResponse:
        await self._thawed()
        group = await self._known(request.group, call)
        leads = self._terms.groups[group].leads
        await require(call, leads, grpc.StatusCode.FAILED_PRECONDITION, "not the leader")
        self._hand_over(group)
        return pb.LeadershipResignResponse(leader=self._terms.leader(group))

    async def Watch(
        self, request: pb.LeadershipWatchRequest, call: Call
    ) -> AsyncIterator[pb.LeadershipWatchResponse]:
        self.watchers += 1
        group = await self._known(request.group, call)
        while True:
            if self._terms.renewing:
                yield pb.LeadershipWatchResponse(leader=self._terms.leader(group))
            await self._news(group)

    async def _news(self, group: str) -> None:
        """Returns after a change, or when a renewal is due and made."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEWAL_SECONDS), self._terms.changed:
                    await self._terms.changed.wait()
                    return
            if self._terms.groups[group].leads:
                return

    async def _thawed(self) -> None:
        """A frozen process answers nothing."""
        while not self._terms.renewing:
            async with self._terms.changed:
                await self._terms.changed.wait()

    async def _known(self, group: str, call: Call) -> str:
        group = group or "default"
        return group if group in self._terms.groups else await not_found(call, f"group {group}")
