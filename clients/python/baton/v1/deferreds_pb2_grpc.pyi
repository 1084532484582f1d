# Generated from baton/v1/deferreds.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import deferreds_pb2 as pb

class DeferredsStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Create: grpc.aio.UnaryUnaryMultiCallable[pb.DeferredsCreateRequest, pb.DeferredsCreateResponse]
    Await: grpc.aio.UnaryUnaryMultiCallable[pb.DeferredsAwaitRequest, pb.DeferredsAwaitResponse]
    Complete: grpc.aio.UnaryUnaryMultiCallable[pb.DeferredsCompleteRequest, pb.DeferredsCompleteResponse]
    Fail: grpc.aio.UnaryUnaryMultiCallable[pb.DeferredsFailRequest, pb.DeferredsFailResponse]
    List: grpc.aio.UnaryUnaryMultiCallable[pb.DeferredsListRequest, pb.DeferredsListResponse]
    Get: grpc.aio.UnaryUnaryMultiCallable[pb.DeferredsGetRequest, pb.DeferredsGetResponse]

class DeferredsServicer:
    def Create(
        self,
        request: pb.DeferredsCreateRequest,
        context: grpc.aio.ServicerContext[pb.DeferredsCreateRequest, pb.DeferredsCreateResponse],
    ) -> Awaitable[pb.DeferredsCreateResponse]: ...
    def Await(
        self,
        request: pb.DeferredsAwaitRequest,
        context: grpc.aio.ServicerContext[pb.DeferredsAwaitRequest, pb.DeferredsAwaitResponse],
    ) -> Awaitable[pb.DeferredsAwaitResponse]: ...
    def Complete(
        self,
        request: pb.DeferredsCompleteRequest,
        context: grpc.aio.ServicerContext[pb.DeferredsCompleteRequest, pb.DeferredsCompleteResponse],
    ) -> Awaitable[pb.DeferredsCompleteResponse]: ...
    def Fail(
        self,
        request: pb.DeferredsFailRequest,
        context: grpc.aio.ServicerContext[pb.DeferredsFailRequest, pb.DeferredsFailResponse],
    ) -> Awaitable[pb.DeferredsFailResponse]: ...
    def List(
        self,
        request: pb.DeferredsListRequest,
        context: grpc.aio.ServicerContext[pb.DeferredsListRequest, pb.DeferredsListResponse],
    ) -> Awaitable[pb.DeferredsListResponse]: ...
    def Get(
        self,
        request: pb.DeferredsGetRequest,
        context: grpc.aio.ServicerContext[pb.DeferredsGetRequest, pb.DeferredsGetResponse],
    ) -> Awaitable[pb.DeferredsGetResponse]: ...

def add_DeferredsServicer_to_server(
    servicer: DeferredsServicer, server: grpc.aio.Server
) -> None: ...
