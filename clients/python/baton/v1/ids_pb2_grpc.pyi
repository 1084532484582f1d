# Generated from baton/v1/ids.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import ids_pb2 as pb

class IdsStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Generate: grpc.aio.UnaryUnaryMultiCallable[pb.IdsGenerateRequest, pb.IdsGenerateResponse]
    Decompose: grpc.aio.UnaryUnaryMultiCallable[pb.IdsDecomposeRequest, pb.IdsDecomposeResponse]

class IdsServicer:
    def Generate(
        self,
        request: pb.IdsGenerateRequest,
        context: grpc.aio.ServicerContext[pb.IdsGenerateRequest, pb.IdsGenerateResponse],
    ) -> Awaitable[pb.IdsGenerateResponse]: ...
    def Decompose(
        self,
        request: pb.IdsDecomposeRequest,
        context: grpc.aio.ServicerContext[pb.IdsDecomposeRequest, pb.IdsDecomposeResponse],
    ) -> Awaitable[pb.IdsDecomposeResponse]: ...

def add_IdsServicer_to_server(
    servicer: IdsServicer, server: grpc.aio.Server
) -> None: ...
