# Generated from baton/v1/runs.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import runs_pb2 as pb

class RunsStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Get: grpc.aio.UnaryUnaryMultiCallable[pb.RunsGetRequest, pb.RunsGetResponse]
    List: grpc.aio.UnaryUnaryMultiCallable[pb.RunsListRequest, pb.RunsListResponse]
    Stats: grpc.aio.UnaryUnaryMultiCallable[pb.RunsStatsRequest, pb.RunsStatsResponse]
    Cancel: grpc.aio.UnaryUnaryMultiCallable[pb.RunsCancelRequest, pb.RunsCancelResponse]
    Retry: grpc.aio.UnaryUnaryMultiCallable[pb.RunsRetryRequest, pb.RunsRetryResponse]
    Checkpoint: grpc.aio.UnaryUnaryMultiCallable[pb.RunsCheckpointRequest, pb.RunsCheckpointResponse]
    Heartbeat: grpc.aio.UnaryUnaryMultiCallable[pb.RunsHeartbeatRequest, pb.RunsHeartbeatResponse]

class RunsServicer:
    def Get(
        self,
        request: pb.RunsGetRequest,
        context: grpc.aio.ServicerContext[pb.RunsGetRequest, pb.RunsGetResponse],
    ) -> Awaitable[pb.RunsGetResponse]: ...
    def List(
        self,
        request: pb.RunsListRequest,
        context: grpc.aio.ServicerContext[pb.RunsListRequest, pb.RunsListResponse],
    ) -> Awaitable[pb.RunsListResponse]: ...
    def Stats(
        self,
        request: pb.RunsStatsRequest,
        context: grpc.aio.ServicerContext[pb.RunsStatsRequest, pb.RunsStatsResponse],
    ) -> Awaitable[pb.RunsStatsResponse]: ...
    def Cancel(
        self,
        request: pb.RunsCancelRequest,
        context: grpc.aio.ServicerContext[pb.RunsCancelRequest, pb.RunsCancelResponse],
    ) -> Awaitable[pb.RunsCancelResponse]: ...
    def Retry(
        self,
        request: pb.RunsRetryRequest,
        context: grpc.aio.ServicerContext[pb.RunsRetryRequest, pb.RunsRetryResponse],
    ) -> Awaitable[pb.RunsRetryResponse]: ...
    def Checkpoint(
        self,
        request: pb.RunsCheckpointRequest,
        context: grpc.aio.ServicerContext[pb.RunsCheckpointRequest, pb.RunsCheckpointResponse],
    ) -> Awaitable[pb.RunsCheckpointResponse]: ...
    def Heartbeat(
        self,
        request: pb.RunsHeartbeatRequest,
        context: grpc.aio.ServicerContext[pb.RunsHeartbeatRequest, pb.RunsHeartbeatResponse],
    ) -> Awaitable[pb.RunsHeartbeatResponse]: ...

def add_RunsServicer_to_server(
    servicer: RunsServicer, server: grpc.aio.Server
) -> None: ...
