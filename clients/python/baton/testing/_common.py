"""What the services of the fake share: refusing, paging, time, and the terms of the groups."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, Protocol, TypeVar

import grpc
import grpc.aio

from baton._clock import boottime
from baton.v1 import leadership_pb2

Call = grpc.aio.ServicerContext[Any, Any]
Item = TypeVar("Item")


class Paged(Protocol):
    """A request for one page of a list."""

    page_size: int
    page_token: str


async def eventually(condition: Callable[[], object], seconds: float = 5.0) -> None:
    """Returns when the condition holds, which another task brings about; else TimeoutError."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def now() -> datetime:
    """The time that is written into records."""
    return datetime.now(UTC)


def page(items: Sequence[Item], request: Paged) -> tuple[Sequence[Item], str]:
    """One page of a list, and the token of the next."""
    begin = int(request.page_token or 0)
    end = begin + min(request.page_size or 100, 1000)
    return items[begin:end], str(end) if end < len(items) else ""


async def not_found(call: Call, what: str) -> NoReturn:
    """Refuses a call that names something unknown."""
    await call.abort(grpc.StatusCode.NOT_FOUND, f"{what} does not exist")


class Refused(Exception):
    """A request that the fake does not accept, however it came."""

    def __init__(
        self, code: grpc.StatusCode, message: str, *, existing: bytes | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.existing = code, existing


async def accepted(call: Call, action: Callable[[], Item]) -> Item:
    """What `action` returns; what it refuses is how the call ends."""
    try:
        return action()
    except Refused as refused:
        await call.abort(refused.code, str(refused))


async def require(call: Call, condition: bool, code: grpc.StatusCode, message: str) -> None:
    """Refuses a call unless the condition holds."""
    if not condition:
        await call.abort(code, message)


@dataclass
class Term:
    """The leadership of one group by this fake."""

    group: str
    epoch: int = 0
    leads: bool = False
    draining: bool = False
    trusted_seconds: float = 3.0


class Terms:
    """The groups, and a bell that rings when something about them changes."""

    def __init__(self, groups: Sequence[str]) -> None:
        self.groups = {group: Term(group) for group in groups}
        self.renewing = True
        self.changed = asyncio.Condition()

    def begin(self, group: str, trusted_seconds: float) -> Term:
        """A new term, its epoch above every earlier one."""
        term = self.groups[group]
        epoch = max(term.epoch + 1, time.time_ns() // 1_000_000)
        self.groups[group] = Term(group, epoch, True, False, trusted_seconds)
        return self.groups[group]

    def is_current(self, group: str, epoch: int) -> bool:
        """Whether writes of this epoch are accepted."""
        return self.groups[group].leads and self.groups[group].epoch == epoch

    async def ring(self) -> None:
        """Tells all watchers."""
        async with self.changed:
            self.changed.notify_all()

    def leader(self, group: str) -> leadership_pb2.Leader:
        """The message about a group, its trust counted from now."""
        term = self.groups[group]
        leader = leadership_pb2.Leader(group=group, epoch=term.epoch, is_leader=term.leads)
        if term.leads:
            leader.leader_runner_id, leader.leader_host = "fake-runner", "localhost"
            leader.draining = term.draining
            leader.trusted_for.FromTimedelta(timedelta(seconds=term.trusted_seconds))
            until = timedelta(seconds=boottime() + term.trusted_seconds)
            leader.trusted_until_boottime.FromTimedelta(until)
        return leader
