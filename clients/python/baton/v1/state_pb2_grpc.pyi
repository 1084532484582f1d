# Generated from baton/v1/state.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import state_pb2 as pb

class StateStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Get: grpc.aio.UnaryUnaryMultiCallable[pb.StateGetRequest, pb.StateGetResponse]
    Put: grpc.aio.UnaryUnaryMultiCallable[pb.StatePutRequest, pb.StatePutResponse]
    Delete: grpc.aio.UnaryUnaryMultiCallable[pb.StateDeleteRequest, pb.StateDeleteResponse]
    Has: grpc.aio.UnaryUnaryMultiCallable[pb.StateHasRequest, pb.StateHasResponse]
    List: grpc.aio.UnaryUnaryMultiCallable[pb.StateListRequest, pb.StateListResponse]
    Size: grpc.aio.UnaryUnaryMultiCallable[pb.StateSizeRequest, pb.StateSizeResponse]
    Clear: grpc.aio.UnaryUnaryMultiCallable[pb.StateClearRequest, pb.StateClearResponse]
    Watch: grpc.aio.UnaryStreamMultiCallable[pb.StateWatchRequest, pb.StateWatchResponse]

class StateServicer:
    def Get(
        self,
        request: pb.StateGetRequest,
        context: grpc.aio.ServicerContext[pb.StateGetRequest, pb.StateGetResponse],
    ) -> Awaitable[pb.StateGetResponse]: ...
    def Put(
        self,
        request: pb.StatePutRequest,
        context: grpc.aio.ServicerContext[pb.StatePutRequest, pb.StatePutResponse],
    ) -> Awaitable[pb.StatePutResponse]: ...
    def Delete(
        self,
        request: pb.StateDeleteRequest,
        context: grpc.aio.ServicerContext[pb.StateDeleteRequest, pb.StateDeleteResponse],
    ) -> Awaitable[pb.StateDeleteResponse]: ...
    def Has(
        self,
        request: pb.StateHasRequest,
        context: grpc.aio.ServicerContext[pb.StateHasRequest, pb.StateHasResponse],
    ) -> Awaitable[pb.StateHasResponse]: ...
    def List(
        self,
        request: pb.StateListRequest,
        context: grpc.aio.ServicerContext[pb.StateListRequest, pb.StateListResponse],
    ) -> Awaitable[pb.StateListResponse]: ...
    def Size(
        self,
        request: pb.StateSizeRequest,
        context: grpc.aio.ServicerContext[pb.StateSizeRequest, pb.StateSizeResponse],
    ) -> Awaitable[pb.StateSizeResponse]: ...
    def Clear(
        self,
        request: pb.StateClearRequest,
        context: grpc.aio.ServicerContext[pb.StateClearRequest, pb.StateClearResponse],
    ) -> Awaitable[pb.StateClearResponse]: ...
    def Watch(
        self,
        request: pb.StateWatchRequest,
        context: grpc.aio.ServicerContext[pb.StateWatchRequest, pb.StateWatchResponse],
    ) -> AsyncIterator[pb.StateWatchResponse]: ...

def add_StateServicer_to_server(
    servicer: StateServicer, server: grpc.aio.Server
) -> None: ...
