"""The methods of the API as their descriptors declare them: paths, messages, kinds.

A service needs no code of its own here: what is registered with the gRPC server is found by name.
Methods with a client stream have no form over plain HTTP and are left out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass


@dataclass(frozen=True, slots=True)
class Method:
    service: str  # its full name, such as baton.v1.Runs
    name: str
    request: type[Message]
    response: type[Message]
    streams: bool  # the answer is a stream
    reads: bool  # it is declared to have no side effects

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


def methods_of(services: Iterable[str]) -> Iterator[Method]:
    """Every method of these services that has one request."""
    pool = descriptor_pool.Default()
    for name in services:
        for method in pool.FindServiceByName(name).methods:
            if not method.client_streaming:
                yield _method(name, method)


def _method(service: str, method: MethodDescriptor) -> Method:
    options: MethodOptions = method.GetOptions()
    return Method(
        service=service,
        name=method.name,
        request=GetMessageClass(method.input_type),
        response=GetMessageClass(method.output_type),
        streams=method.server_streaming,
        reads=options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS,
    )
