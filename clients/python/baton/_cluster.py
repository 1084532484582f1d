"""Where a call comes from, available to everything called below a handler or a hook."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from baton.errors import ClusterContextRequired
from baton.v1 import callback_pb2 as pb

if TYPE_CHECKING:
    from baton._sidecar import Sidecar


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """The term, and with a handler the entity, on whose behalf this code runs."""

    cluster: str
    runner_id: str
    group: str
    is_leader: bool
    epoch: int
    entity_type: str = ""
    entity_id: str = ""

    @staticmethod
    def of(message: pb.ClusterContext) -> ClusterContext:
        """From the message of a callback; an empty group means `default`."""
        return ClusterContext(
            cluster=message.cluster,
            runner_id=message.runner_id,
            group=message.group or "default",
            is_leader=message.is_leader,
            epoch=message.epoch,
            entity_type=message.entity_type,
            entity_id=message.entity_id,
        )


@dataclass(frozen=True, slots=True)
class Scope:
    """What a callback sets for the code below it."""

    cluster: ClusterContext
    sidecar: Sidecar
    traceparent: str = ""


_scope: ContextVar[Scope | None] = ContextVar("baton_scope", default=None)


def enter_scope(scope: Scope) -> None:
    """Sets the scope of the current task; a callback runs in a task of its own."""
    _scope.set(scope)


def cluster_context() -> ClusterContext:
    """The context of the handler or hook above; `ClusterContextRequired` if there is none."""
    return _required().cluster


async def next_id() -> int:
    """A new cluster-wide id, from the sidecar of the handler or hook above."""
    return await _required().sidecar.next_id()


def traceparent() -> str:
    """The trace to go on with in calls to the sidecar; empty: none."""
    scope = _scope.get()
    return scope.traceparent if scope else ""


def _required() -> Scope:
    scope = _scope.get()
    if scope is None:
        raise ClusterContextRequired("no cluster context: call this below a handler or a hook")
    return scope
