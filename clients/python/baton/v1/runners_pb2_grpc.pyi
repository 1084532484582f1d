# Generated from baton/v1/runners.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import runners_pb2 as pb

class RunnersStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    List: grpc.aio.UnaryUnaryMultiCallable[pb.RunnersListRequest, pb.RunnersListResponse]

class RunnersServicer:
    def List(
        self,
        request: pb.RunnersListRequest,
        context: grpc.aio.ServicerContext[pb.RunnersListRequest, pb.RunnersListResponse],
    ) -> Awaitable[pb.RunnersListResponse]: ...

def add_RunnersServicer_to_server(
    servicer: RunnersServicer, server: grpc.aio.Server
) -> None: ...
