# Generated from baton/v1/singletons.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import singletons_pb2 as pb

class SingletonsStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Get: grpc.aio.UnaryUnaryMultiCallable[pb.SingletonsGetRequest, pb.SingletonsGetResponse]
    List: grpc.aio.UnaryUnaryMultiCallable[pb.SingletonsListRequest, pb.SingletonsListResponse]

class SingletonsServicer:
    def Get(
        self,
        request: pb.SingletonsGetRequest,
        context: grpc.aio.ServicerContext[pb.SingletonsGetRequest, pb.SingletonsGetResponse],
    ) -> Awaitable[pb.SingletonsGetResponse]: ...
    def List(
        self,
        request: pb.SingletonsListRequest,
        context: grpc.aio.ServicerContext[pb.SingletonsListRequest, pb.SingletonsListResponse],
    ) -> Awaitable[pb.SingletonsListResponse]: ...

def add_SingletonsServicer_to_server(
    servicer: SingletonsServicer, server: grpc.aio.Server
) -> None: ...
