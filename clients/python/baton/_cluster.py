"""Where a call comes from, available to everything called below a handler or a hook."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
    def of(message: pb.ClusterContext, *, cluster: str = "", runner_id: str = "") -> ClusterContext:
        """From a message of the sidecar; a stream names cluster and runner once, in `welcome`.

        An empty group means `default`, except for a job, which belongs to no group.
        """
        is_job = message.entity_type == "job"
        return ClusterContext(
            cluster=message.cluster or cluster,
            runner_id=message.runner_id or runner_id,
            group=message.group or ("" if is_job else "default"),
            is_leader=message.is_leader,
            epoch=message.epoch,
            entity_type=message.entity_type,
            entity_id=message.entity_id,
        )


class Scope(Protocol):
    """What a handler or a hook sets for the code below it."""

    @property
    def cluster(self) -> ClusterContext: ...
    @property
    def sidecar(self) -> Sidecar: ...
    @property
    def traceparent(self) -> str: ...


@dataclass(frozen=True, slots=True)
class HookScope:
    """The scope of a hook."""

    cluster: ClusterContext
    sidecar: Sidecar
    traceparent: str = ""


_scope: ContextVar[Scope | None] = ContextVar("baton_scope", default=None)
enter_scope = _scope.set  # of the current task: a hook or a handler runs in a task of its own


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
