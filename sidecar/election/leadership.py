"""Which runner leads each group, and how to request a hand-over, from any pod.

Guarantees: the view of this runner's own leadership is exact and limited by its lease; the view of
other runners is as old as the last poll. A resign request is stored before it is acknowledged, so
the leader sees it at its next ping even if the hint is lost.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sidecar.model.election_types import LeaderView
from sidecar.model.errors import FailedPrecondition, NotFound
from sidecar.model.term import LossReason

DEFAULT_GROUP = "default"


class Elections(Protocol):
    """The local election."""

    def view(self, group: str) -> LeaderView: ...
    async def changed(self) -> None: ...
    def resign(self, group: str, reason: LossReason) -> None: ...


class Requests(Protocol):
    """Stores a request for the leader of an epoch, on any pod, to hand over."""

    async def request_resign(self, group_id: int, epoch: int) -> None: ...


class Leadership:
    """The leadership of every group of the cluster."""

    def __init__(
        self,
        elections: Elections,
        requests: Requests,
        group_ids: Callable[[], Mapping[str, int]],
        notify: Callable[[str, str], None],
        *,
        groups: Sequence[str],
        host: str,
    ) -> None:
        self._elections = elections
        self._requests = requests
        self._group_ids = group_ids
        self._notify = notify
        self._groups = groups
        self._host = host

    def get(self, group: str) -> LeaderView:
        """The leader of `group`; empty means the default group."""
        name = group or DEFAULT_GROUP
        if name not in self._groups:
            raise NotFound(f"group: {name!r} is not in the configuration")
        view = self._elections.view(name)
        return replace(view, host=self._host) if view.is_leader else view

    def all(self) -> list[LeaderView]:
        return [self.get(name) for name in sorted(self._groups)]

    async def watch(self, group: str) -> AsyncIterator[LeaderView]:
        """The current leader, then again after each change and each renewal of its lease."""
        last: LeaderView | None = None
        while True:
            # Compare before waiting: the view may have changed while the reader was busy.
            if (view := self.get(group)) != last:
                last = view
                yield view
            else:
                await self._elections.changed()

    async def resign(self, group: str) -> LeaderView:
        """Start the hand-over if this runner leads; otherwise request it from the leader."""
        view = self.get(group)
        if view.is_leader:
            self._elections.resign(view.group, LossReason.RESIGNED)
        elif view.runner_id:
            await self._requests.request_resign(self._group_ids()[view.group], view.epoch)
            self._notify("resign", view.group)
        else:
            raise FailedPrecondition(f"group: {view.group!r} has no leader")
        return self.get(group)
