# Generated from baton/v1/operations.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import operations_pb2 as pb

class OperationsStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Drain: grpc.aio.UnaryUnaryMultiCallable[pb.OperationsDrainRequest, pb.OperationsDrainResponse]

class OperationsServicer:
    def Drain(
        self,
        request: pb.OperationsDrainRequest,
        context: grpc.aio.ServicerContext[pb.OperationsDrainRequest, pb.OperationsDrainResponse],
    ) -> Awaitable[pb.OperationsDrainResponse]: ...

def add_OperationsServicer_to_server(
    servicer: OperationsServicer, server: grpc.aio.Server
) -> None: ...
