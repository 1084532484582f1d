"""The first message of an attached process, checked (G11)."""

from collections.abc import Iterable

from sidecar._proto.baton.v1 import stream_pb2
from sidecar.adapters.app.process import ProcessHello
from sidecar.adapters.grpc_server.schedules import definition_of, duration_in, state_of
from sidecar.model.definitions import Singleton
from sidecar.model.errors import InvalidArgument
from sidecar.model.validation import NAME, check_text

CAPACITY_MAX = 10_000
NAMES_MAX = 10_000
REVISION_MAX = 10**15


def hello_of(message: stream_pb2.Hello) -> ProcessHello:
    check_text("hello.client", message.client)
    check_text("hello.process_id", message.process_id)
    if not 1 <= message.capacity <= CAPACITY_MAX:
        raise InvalidArgument("hello.capacity", f"must be between 1 and {CAPACITY_MAX}")
    if message.revision > REVISION_MAX:
        raise InvalidArgument("hello.revision", f"must be at most {REVISION_MAX}")
    declared = [
        definition_of(each, "hello.declared_schedules") for each in message.declared_schedules
    ]
    singletons = [_singleton(each) for each in message.declared_singletons]
    for field, names in (
        ("hello.declared_schedules", [each.name for each in declared]),
        ("hello.declared_singletons", [each.name for each in singletons]),
    ):
        if len(set(names)) != len(names):
            raise InvalidArgument(field, "declares a name twice")
    return ProcessHello(
        client=message.client,
        process_id=message.process_id,
        capacity=message.capacity,
        singletons=_names("hello.singletons", message.singletons),
        schedules=_names("hello.schedules", message.schedules),
        jobs=_names("hello.jobs", message.jobs),
        declared_schedules=tuple(declared),
        declared_singletons=tuple(singletons),
        revision=message.revision,
    )


def _names(field: str, names: Iterable[str]) -> frozenset[str]:
    found = frozenset(names)
    if len(found) > NAMES_MAX:
        raise InvalidArgument(field, f"has more than {NAMES_MAX} names")
    for name in found:
        _check_name(field, name)
    return found


def _check_name(field: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            field, f"{name[:60]!r} is not a name: 1 to 255 of A-Z a-z 0-9 . _ -, first no sign"
        )


def _singleton(message: stream_pb2.DeclaredSingleton) -> Singleton:
    place = "hello.declared_singletons."
    _check_name(f"{place}name", message.name)
    return Singleton(
        name=message.name,
        group=message.group or "default",
        expected_interval_seconds=duration_in(message, "expected_interval", 0.0, place),
        restart_after_seconds=duration_in(message, "restart_after", 5.0, place),
        state=state_of(message.state, f"{place}state."),
    )
