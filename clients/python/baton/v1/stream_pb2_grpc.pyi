# Generated from baton/v1/stream.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import stream_pb2 as pb

class AppStreamStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Attach: grpc.aio.StreamStreamMultiCallable[pb.AttachRequest, pb.AttachResponse]

class AppStreamServicer:
    def Attach(
        self,
        request: AsyncIterator[pb.AttachRequest],
        context: grpc.aio.ServicerContext[pb.AttachRequest, pb.AttachResponse],
    ) -> AsyncIterator[pb.AttachResponse]: ...

def add_AppStreamServicer_to_server(
    servicer: AppStreamServicer, server: grpc.aio.Server
) -> None: ...
