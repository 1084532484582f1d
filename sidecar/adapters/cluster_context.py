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
    fields = (
        ("baton-cluster", context.cluster),
        ("baton-runner-id", context.runner_id),
        ("baton-group", context.group),
        ("baton-is-leader", "true" if context.is_leader else "false"),
        ("baton-epoch", str(context.epoch)),
        ("baton-entity-type", context.entity_type),
        ("baton-entity-id", context.entity_id),
    )
    return tuple((key, _quoted(value)) for key, value in fields if value)


@lru_cache(256)
def _quoted(value: str) -> str:
    return quote(value, safe=_PLAIN)
