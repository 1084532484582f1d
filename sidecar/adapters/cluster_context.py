"""The ClusterContext of a callback as gRPC metadata, for those who never see the message.

An interceptor, a proxy or a logging middleware of the app reads `baton-cluster`, `baton-runner-id`,
`baton-group`, `baton-is-leader`, `baton-epoch`, `baton-entity-type` and `baton-entity-id`; what is
empty is left out. Values are percent-encoded where metadata could not carry them: a runner's id may
begin with the name of a strange host.
"""

from functools import lru_cache
from urllib.parse import quote

from sidecar._proto.baton.v1 import callback_pb2

# Printable ASCII passes as it is, but for the percent sign itself.
_PLAIN = "".join(chr(number) for number in range(0x21, 0x7F) if chr(number) != "%")


def context_metadata(context: callback_pb2.ClusterContext) -> tuple[tuple[str, str], ...]:
    term = _of_term(
        context.cluster, context.runner_id, context.group, context.is_leader, context.epoch
    )
    return term + _present(
        ("baton-entity-type", context.entity_type), ("baton-entity-id", context.entity_id)
    )


@lru_cache(64)
def _of_term(
    cluster: str, runner_id: str, group: str, is_leader: bool, epoch: int
) -> tuple[tuple[str, str], ...]:
    """The same for every call of a term."""
    return _present(
        ("baton-cluster", cluster),
        ("baton-runner-id", runner_id),
        ("baton-group", group),
        ("baton-is-leader", "true" if is_leader else "false"),
        ("baton-epoch", str(epoch)),
    )


def _present(*fields: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple([(key, _quoted(value)) for key, value in fields if value])


@lru_cache(4096)
def _quoted(value: str) -> str:
    return quote(value, safe=_PLAIN)
