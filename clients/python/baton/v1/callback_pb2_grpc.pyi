# Generated from baton/v1/callback.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import callback_pb2 as pb

class AppCallbackStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    OnBecomeLeader: grpc.aio.UnaryUnaryMultiCallable[pb.OnBecomeLeaderRequest, pb.OnBecomeLeaderResponse]
    OnLoseLeadership: grpc.aio.UnaryUnaryMultiCallable[pb.OnLoseLeadershipRequest, pb.OnLoseLeadershipResponse]
    Execute: grpc.aio.UnaryUnaryMultiCallable[pb.ExecuteRequest, pb.ExecuteResponse]

class AppCallbackServicer:
    def OnBecomeLeader(
        self,
        request: pb.OnBecomeLeaderRequest,
        context: grpc.aio.ServicerContext[pb.OnBecomeLeaderRequest, pb.OnBecomeLeaderResponse],
    ) -> Awaitable[pb.OnBecomeLeaderResponse]: ...
    def OnLoseLeadership(
        self,
        request: pb.OnLoseLeadershipRequest,
        context: grpc.aio.ServicerContext[pb.OnLoseLeadershipRequest, pb.OnLoseLeadershipResponse],
    ) -> Awaitable[pb.OnLoseLeadershipResponse]: ...
    def Execute(
        self,
        request: pb.ExecuteRequest,
        context: grpc.aio.ServicerContext[pb.ExecuteRequest, pb.ExecuteResponse],
    ) -> Awaitable[pb.ExecuteResponse]: ...

def add_AppCallbackServicer_to_server(
    servicer: AppCallbackServicer, server: grpc.aio.Server
) -> None: ...
