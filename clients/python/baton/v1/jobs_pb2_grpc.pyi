# Generated from baton/v1/jobs.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import jobs_pb2 as pb

class JobsStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Submit: grpc.aio.UnaryUnaryMultiCallable[pb.JobsSubmitRequest, pb.JobsSubmitResponse]
    Get: grpc.aio.UnaryUnaryMultiCallable[pb.JobsGetRequest, pb.JobsGetResponse]
    List: grpc.aio.UnaryUnaryMultiCallable[pb.JobsListRequest, pb.JobsListResponse]
    Cancel: grpc.aio.UnaryUnaryMultiCallable[pb.JobsCancelRequest, pb.JobsCancelResponse]
    Retry: grpc.aio.UnaryUnaryMultiCallable[pb.JobsRetryRequest, pb.JobsRetryResponse]
    Reschedule: grpc.aio.UnaryUnaryMultiCallable[pb.JobsRescheduleRequest, pb.JobsRescheduleResponse]
    Watch: grpc.aio.UnaryStreamMultiCallable[pb.JobsWatchRequest, pb.JobsWatchResponse]
    Stats: grpc.aio.UnaryUnaryMultiCallable[pb.JobsStatsRequest, pb.JobsStatsResponse]
    PauseQueue: grpc.aio.UnaryUnaryMultiCallable[pb.JobsPauseQueueRequest, pb.JobsPauseQueueResponse]
    ResumeQueue: grpc.aio.UnaryUnaryMultiCallable[pb.JobsResumeQueueRequest, pb.JobsResumeQueueResponse]
    GetBatch: grpc.aio.UnaryUnaryMultiCallable[pb.JobsGetBatchRequest, pb.JobsGetBatchResponse]
    ListDead: grpc.aio.UnaryUnaryMultiCallable[pb.JobsListDeadRequest, pb.JobsListDeadResponse]
    Replay: grpc.aio.UnaryUnaryMultiCallable[pb.JobsReplayRequest, pb.JobsReplayResponse]
    Discard: grpc.aio.UnaryUnaryMultiCallable[pb.JobsDiscardRequest, pb.JobsDiscardResponse]

class JobsServicer:
    def Submit(
        self,
        request: pb.JobsSubmitRequest,
        context: grpc.aio.ServicerContext[pb.JobsSubmitRequest, pb.JobsSubmitResponse],
    ) -> Awaitable[pb.JobsSubmitResponse]: ...
    def Get(
        self,
        request: pb.JobsGetRequest,
        context: grpc.aio.ServicerContext[pb.JobsGetRequest, pb.JobsGetResponse],
    ) -> Awaitable[pb.JobsGetResponse]: ...
    def List(
        self,
        request: pb.JobsListRequest,
        context: grpc.aio.ServicerContext[pb.JobsListRequest, pb.JobsListResponse],
    ) -> Awaitable[pb.JobsListResponse]: ...
    def Cancel(
        self,
        request: pb.JobsCancelRequest,
        context: grpc.aio.ServicerContext[pb.JobsCancelRequest, pb.JobsCancelResponse],
    ) -> Awaitable[pb.JobsCancelResponse]: ...
    def Retry(
        self,
        request: pb.JobsRetryRequest,
        context: grpc.aio.ServicerContext[pb.JobsRetryRequest, pb.JobsRetryResponse],
    ) -> Awaitable[pb.JobsRetryResponse]: ...
    def Reschedule(
        self,
        request: pb.JobsRescheduleRequest,
        context: grpc.aio.ServicerContext[pb.JobsRescheduleRequest, pb.JobsRescheduleResponse],
    ) -> Awaitable[pb.JobsRescheduleResponse]: ...
    def Watch(
        self,
        request: pb.JobsWatchRequest,
        context: grpc.aio.ServicerContext[pb.JobsWatchRequest, pb.JobsWatchResponse],
    ) -> AsyncIterator[pb.JobsWatchResponse]: ...
    def Stats(
        self,
        request: pb.JobsStatsRequest,
        context: grpc.aio.ServicerContext[pb.JobsStatsRequest, pb.JobsStatsResponse],
    ) -> Awaitable[pb.JobsStatsResponse]: ...
    def PauseQueue(
        self,
        request: pb.JobsPauseQueueRequest,
        context: grpc.aio.ServicerContext[pb.JobsPauseQueueRequest, pb.JobsPauseQueueResponse],
    ) -> Awaitable[pb.JobsPauseQueueResponse]: ...
    def ResumeQueue(
        self,
        request: pb.JobsResumeQueueRequest,
        context: grpc.aio.ServicerContext[pb.JobsResumeQueueRequest, pb.JobsResumeQueueResponse],
    ) -> Awaitable[pb.JobsResumeQueueResponse]: ...
    def GetBatch(
        self,
        request: pb.JobsGetBatchRequest,
        context: grpc.aio.ServicerContext[pb.JobsGetBatchRequest, pb.JobsGetBatchResponse],
    ) -> Awaitable[pb.JobsGetBatchResponse]: ...
    def ListDead(
        self,
        request: pb.JobsListDeadRequest,
        context: grpc.aio.ServicerContext[pb.JobsListDeadRequest, pb.JobsListDeadResponse],
    ) -> Awaitable[pb.JobsListDeadResponse]: ...
    def Replay(
        self,
        request: pb.JobsReplayRequest,
        context: grpc.aio.ServicerContext[pb.JobsReplayRequest, pb.JobsReplayResponse],
    ) -> Awaitable[pb.JobsReplayResponse]: ...
    def Discard(
        self,
        request: pb.JobsDiscardRequest,
        context: grpc.aio.ServicerContext[pb.JobsDiscardRequest, pb.JobsDiscardResponse],
    ) -> Awaitable[pb.JobsDiscardResponse]: ...

def add_JobsServicer_to_server(
    servicer: JobsServicer, server: grpc.aio.Server
) -> None: ...
