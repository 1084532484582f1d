# Generated from baton/v1/schedules.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import schedules_pb2 as pb

class SchedulesStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Create: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesCreateRequest, pb.SchedulesCreateResponse]
    Get: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesGetRequest, pb.SchedulesGetResponse]
    List: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesListRequest, pb.SchedulesListResponse]
    Update: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesUpdateRequest, pb.SchedulesUpdateResponse]
    Delete: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesDeleteRequest, pb.SchedulesDeleteResponse]
    Pause: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesPauseRequest, pb.SchedulesPauseResponse]
    Resume: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesResumeRequest, pb.SchedulesResumeResponse]
    Trigger: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesTriggerRequest, pb.SchedulesTriggerResponse]
    Backfill: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesBackfillRequest, pb.SchedulesBackfillResponse]
    Preview: grpc.aio.UnaryUnaryMultiCallable[pb.SchedulesPreviewRequest, pb.SchedulesPreviewResponse]

class SchedulesServicer:
    def Create(
        self,
        request: pb.SchedulesCreateRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesCreateRequest, pb.SchedulesCreateResponse],
    ) -> Awaitable[pb.SchedulesCreateResponse]: ...
    def Get(
        self,
        request: pb.SchedulesGetRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesGetRequest, pb.SchedulesGetResponse],
    ) -> Awaitable[pb.SchedulesGetResponse]: ...
    def List(
        self,
        request: pb.SchedulesListRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesListRequest, pb.SchedulesListResponse],
    ) -> Awaitable[pb.SchedulesListResponse]: ...
    def Update(
        self,
        request: pb.SchedulesUpdateRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesUpdateRequest, pb.SchedulesUpdateResponse],
    ) -> Awaitable[pb.SchedulesUpdateResponse]: ...
    def Delete(
        self,
        request: pb.SchedulesDeleteRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesDeleteRequest, pb.SchedulesDeleteResponse],
    ) -> Awaitable[pb.SchedulesDeleteResponse]: ...
    def Pause(
        self,
        request: pb.SchedulesPauseRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesPauseRequest, pb.SchedulesPauseResponse],
    ) -> Awaitable[pb.SchedulesPauseResponse]: ...
    def Resume(
        self,
        request: pb.SchedulesResumeRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesResumeRequest, pb.SchedulesResumeResponse],
    ) -> Awaitable[pb.SchedulesResumeResponse]: ...
    def Trigger(
        self,
        request: pb.SchedulesTriggerRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesTriggerRequest, pb.SchedulesTriggerResponse],
    ) -> Awaitable[pb.SchedulesTriggerResponse]: ...
    def Backfill(
        self,
        request: pb.SchedulesBackfillRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesBackfillRequest, pb.SchedulesBackfillResponse],
    ) -> Awaitable[pb.SchedulesBackfillResponse]: ...
    def Preview(
        self,
        request: pb.SchedulesPreviewRequest,
        context: grpc.aio.ServicerContext[pb.SchedulesPreviewRequest, pb.SchedulesPreviewResponse],
    ) -> Awaitable[pb.SchedulesPreviewResponse]: ...

def add_SchedulesServicer_to_server(
    servicer: SchedulesServicer, server: grpc.aio.Server
) -> None: ...
