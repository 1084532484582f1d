# Generated from baton/v1/leadership.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import leadership_pb2 as pb

class LeadershipStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Get: grpc.aio.UnaryUnaryMultiCallable[pb.LeadershipGetRequest, pb.LeadershipGetResponse]
    List: grpc.aio.UnaryUnaryMultiCallable[pb.LeadershipListRequest, pb.LeadershipListResponse]
    History: grpc.aio.UnaryUnaryMultiCallable[pb.LeadershipHistoryRequest, pb.LeadershipHistoryResponse]
    Resign: grpc.aio.UnaryUnaryMultiCallable[pb.LeadershipResignRequest, pb.LeadershipResignResponse]
    Watch: grpc.aio.UnaryStreamMultiCallable[pb.LeadershipWatchRequest, pb.LeadershipWatchResponse]

class LeadershipServicer:
    def Get(
        self,
        request: pb.LeadershipGetRequest,
        context: grpc.aio.ServicerContext[pb.LeadershipGetRequest, pb.LeadershipGetResponse],
    ) -> Awaitable[pb.LeadershipGetResponse]: ...
    def List(
        self,
        request: pb.LeadershipListRequest,
        context: grpc.aio.ServicerContext[pb.LeadershipListRequest, pb.LeadershipListResponse],
    ) -> Awaitable[pb.LeadershipListResponse]: ...
    def History(
        self,
        request: pb.LeadershipHistoryRequest,
        context: grpc.aio.ServicerContext[pb.LeadershipHistoryRequest, pb.LeadershipHistoryResponse],
    ) -> Awaitable[pb.LeadershipHistoryResponse]: ...
    def Resign(
        self,
        request: pb.LeadershipResignRequest,
        context: grpc.aio.ServicerContext[pb.LeadershipResignRequest, pb.LeadershipResignResponse],
    ) -> Awaitable[pb.LeadershipResignResponse]: ...
    def Watch(
        self,
        request: pb.LeadershipWatchRequest,
        context: grpc.aio.ServicerContext[pb.LeadershipWatchRequest, pb.LeadershipWatchResponse],
    ) -> AsyncIterator[pb.LeadershipWatchResponse]: ...

def add_LeadershipServicer_to_server(
    servicer: LeadershipServicer, server: grpc.aio.Server
) -> None: ...
