package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Manages schedules; answers on any pod, whoever leads.
 * A schedule belongs to the source that made it: the configuration file or this API. One that belongs to
 * the file is changed there only: Update and Delete answer FAILED_PRECONDITION. Pause, Resume,
 * Trigger and Backfill work on both. Unknown or retired names are NOT_FOUND, except with Get.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class SchedulesGrpc {

  private SchedulesGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.Schedules";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesCreateRequest,
      dev.baton.v1.SchedulesCreateResponse> getCreateMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Create",
      requestType = dev.baton.v1.SchedulesCreateRequest.class,
      responseType = dev.baton.v1.SchedulesCreateResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesCreateRequest,
      dev.baton.v1.SchedulesCreateResponse> getCreateMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesCreateRequest, dev.baton.v1.SchedulesCreateResponse> getCreateMethod;
    if ((getCreateMethod = SchedulesGrpc.getCreateMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getCreateMethod = SchedulesGrpc.getCreateMethod) == null) {
          SchedulesGrpc.getCreateMethod = getCreateMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesCreateRequest, dev.baton.v1.SchedulesCreateResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Create"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesCreateRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesCreateResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Create"))
              .build();
        }
      }
    }
    return getCreateMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesGetRequest,
      dev.baton.v1.SchedulesGetResponse> getGetMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Get",
      requestType = dev.baton.v1.SchedulesGetRequest.class,
      responseType = dev.baton.v1.SchedulesGetResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesGetRequest,
      dev.baton.v1.SchedulesGetResponse> getGetMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesGetRequest, dev.baton.v1.SchedulesGetResponse> getGetMethod;
    if ((getGetMethod = SchedulesGrpc.getGetMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getGetMethod = SchedulesGrpc.getGetMethod) == null) {
          SchedulesGrpc.getGetMethod = getGetMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesGetRequest, dev.baton.v1.SchedulesGetResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Get"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesGetRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesGetResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Get"))
              .build();
        }
      }
    }
    return getGetMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesListRequest,
      dev.baton.v1.SchedulesListResponse> getListMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "List",
      requestType = dev.baton.v1.SchedulesListRequest.class,
      responseType = dev.baton.v1.SchedulesListResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesListRequest,
      dev.baton.v1.SchedulesListResponse> getListMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesListRequest, dev.baton.v1.SchedulesListResponse> getListMethod;
    if ((getListMethod = SchedulesGrpc.getListMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getListMethod = SchedulesGrpc.getListMethod) == null) {
          SchedulesGrpc.getListMethod = getListMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesListRequest, dev.baton.v1.SchedulesListResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "List"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesListRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesListResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("List"))
              .build();
        }
      }
    }
    return getListMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesUpdateRequest,
      dev.baton.v1.SchedulesUpdateResponse> getUpdateMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Update",
      requestType = dev.baton.v1.SchedulesUpdateRequest.class,
      responseType = dev.baton.v1.SchedulesUpdateResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesUpdateRequest,
      dev.baton.v1.SchedulesUpdateResponse> getUpdateMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesUpdateRequest, dev.baton.v1.SchedulesUpdateResponse> getUpdateMethod;
    if ((getUpdateMethod = SchedulesGrpc.getUpdateMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getUpdateMethod = SchedulesGrpc.getUpdateMethod) == null) {
          SchedulesGrpc.getUpdateMethod = getUpdateMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesUpdateRequest, dev.baton.v1.SchedulesUpdateResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Update"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesUpdateRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesUpdateResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Update"))
              .build();
        }
      }
    }
    return getUpdateMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesDeleteRequest,
      dev.baton.v1.SchedulesDeleteResponse> getDeleteMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Delete",
      requestType = dev.baton.v1.SchedulesDeleteRequest.class,
      responseType = dev.baton.v1.SchedulesDeleteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesDeleteRequest,
      dev.baton.v1.SchedulesDeleteResponse> getDeleteMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesDeleteRequest, dev.baton.v1.SchedulesDeleteResponse> getDeleteMethod;
    if ((getDeleteMethod = SchedulesGrpc.getDeleteMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getDeleteMethod = SchedulesGrpc.getDeleteMethod) == null) {
          SchedulesGrpc.getDeleteMethod = getDeleteMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesDeleteRequest, dev.baton.v1.SchedulesDeleteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Delete"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesDeleteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesDeleteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Delete"))
              .build();
        }
      }
    }
    return getDeleteMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesPauseRequest,
      dev.baton.v1.SchedulesPauseResponse> getPauseMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Pause",
      requestType = dev.baton.v1.SchedulesPauseRequest.class,
      responseType = dev.baton.v1.SchedulesPauseResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesPauseRequest,
      dev.baton.v1.SchedulesPauseResponse> getPauseMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesPauseRequest, dev.baton.v1.SchedulesPauseResponse> getPauseMethod;
    if ((getPauseMethod = SchedulesGrpc.getPauseMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getPauseMethod = SchedulesGrpc.getPauseMethod) == null) {
          SchedulesGrpc.getPauseMethod = getPauseMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesPauseRequest, dev.baton.v1.SchedulesPauseResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Pause"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesPauseRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesPauseResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Pause"))
              .build();
        }
      }
    }
    return getPauseMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesResumeRequest,
      dev.baton.v1.SchedulesResumeResponse> getResumeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Resume",
      requestType = dev.baton.v1.SchedulesResumeRequest.class,
      responseType = dev.baton.v1.SchedulesResumeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesResumeRequest,
      dev.baton.v1.SchedulesResumeResponse> getResumeMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesResumeRequest, dev.baton.v1.SchedulesResumeResponse> getResumeMethod;
    if ((getResumeMethod = SchedulesGrpc.getResumeMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getResumeMethod = SchedulesGrpc.getResumeMethod) == null) {
          SchedulesGrpc.getResumeMethod = getResumeMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesResumeRequest, dev.baton.v1.SchedulesResumeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Resume"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesResumeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesResumeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Resume"))
              .build();
        }
      }
    }
    return getResumeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesTriggerRequest,
      dev.baton.v1.SchedulesTriggerResponse> getTriggerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Trigger",
      requestType = dev.baton.v1.SchedulesTriggerRequest.class,
      responseType = dev.baton.v1.SchedulesTriggerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesTriggerRequest,
      dev.baton.v1.SchedulesTriggerResponse> getTriggerMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesTriggerRequest, dev.baton.v1.SchedulesTriggerResponse> getTriggerMethod;
    if ((getTriggerMethod = SchedulesGrpc.getTriggerMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getTriggerMethod = SchedulesGrpc.getTriggerMethod) == null) {
          SchedulesGrpc.getTriggerMethod = getTriggerMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesTriggerRequest, dev.baton.v1.SchedulesTriggerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Trigger"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesTriggerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesTriggerResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Trigger"))
              .build();
        }
      }
    }
    return getTriggerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesBackfillRequest,
      dev.baton.v1.SchedulesBackfillResponse> getBackfillMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Backfill",
      requestType = dev.baton.v1.SchedulesBackfillRequest.class,
      responseType = dev.baton.v1.SchedulesBackfillResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesBackfillRequest,
      dev.baton.v1.SchedulesBackfillResponse> getBackfillMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesBackfillRequest, dev.baton.v1.SchedulesBackfillResponse> getBackfillMethod;
    if ((getBackfillMethod = SchedulesGrpc.getBackfillMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getBackfillMethod = SchedulesGrpc.getBackfillMethod) == null) {
          SchedulesGrpc.getBackfillMethod = getBackfillMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesBackfillRequest, dev.baton.v1.SchedulesBackfillResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Backfill"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesBackfillRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesBackfillResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Backfill"))
              .build();
        }
      }
    }
    return getBackfillMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SchedulesPreviewRequest,
      dev.baton.v1.SchedulesPreviewResponse> getPreviewMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Preview",
      requestType = dev.baton.v1.SchedulesPreviewRequest.class,
      responseType = dev.baton.v1.SchedulesPreviewResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SchedulesPreviewRequest,
      dev.baton.v1.SchedulesPreviewResponse> getPreviewMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SchedulesPreviewRequest, dev.baton.v1.SchedulesPreviewResponse> getPreviewMethod;
    if ((getPreviewMethod = SchedulesGrpc.getPreviewMethod) == null) {
      synchronized (SchedulesGrpc.class) {
        if ((getPreviewMethod = SchedulesGrpc.getPreviewMethod) == null) {
          SchedulesGrpc.getPreviewMethod = getPreviewMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SchedulesPreviewRequest, dev.baton.v1.SchedulesPreviewResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Preview"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesPreviewRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SchedulesPreviewResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SchedulesMethodDescriptorSupplier("Preview"))
              .build();
        }
      }
    }
    return getPreviewMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static SchedulesStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SchedulesStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SchedulesStub>() {
        @java.lang.Override
        public SchedulesStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SchedulesStub(channel, callOptions);
        }
      };
    return SchedulesStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static SchedulesBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SchedulesBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SchedulesBlockingV2Stub>() {
        @java.lang.Override
        public SchedulesBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SchedulesBlockingV2Stub(channel, callOptions);
        }
      };
    return SchedulesBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static SchedulesBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SchedulesBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SchedulesBlockingStub>() {
        @java.lang.Override
        public SchedulesBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SchedulesBlockingStub(channel, callOptions);
        }
      };
    return SchedulesBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static SchedulesFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SchedulesFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SchedulesFutureStub>() {
        @java.lang.Override
        public SchedulesFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SchedulesFutureStub(channel, callOptions);
        }
      };
    return SchedulesFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Manages schedules; answers on any pod, whoever leads.
   * A schedule belongs to the source that made it: the configuration file or this API. One that belongs to
   * the file is changed there only: Update and Delete answer FAILED_PRECONDITION. Pause, Resume,
   * Trigger and Backfill work on both. Unknown or retired names are NOT_FOUND, except with Get.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Makes a schedule. Ticks count from now on. ALREADY_EXISTS if the name is taken by a live one;
     * INVALID_ARGUMENT for, among others, a cron that never fires.
     * </pre>
     */
    default void create(dev.baton.v1.SchedulesCreateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesCreateResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateMethod(), responseObserver);
    }

    /**
     * <pre>
     * One schedule, also a retired one.
     * </pre>
     */
    default void get(dev.baton.v1.SchedulesGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesGetResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMethod(), responseObserver);
    }

    /**
     * <pre>
     * Schedules, by name.
     * </pre>
     */
    default void list(dev.baton.v1.SchedulesListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesListResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListMethod(), responseObserver);
    }

    /**
     * <pre>
     * Replaces the whole definition: a field left unset gets its default. If the timing changes, ticks count
     * from now on; otherwise nothing is lost. A pause is kept.
     * </pre>
     */
    default void update(dev.baton.v1.SchedulesUpdateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesUpdateResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateMethod(), responseObserver);
    }

    /**
     * <pre>
     * Retires a schedule: no more ticks, runs that wait are skipped as OPERATOR, the history stays.
     * </pre>
     */
    default void delete(dev.baton.v1.SchedulesDeleteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesDeleteResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stops a schedule until Resume; ticks meanwhile are recorded as skipped, reason PAUSED. Runs that were
     * begun go on. Pausing again replaces the note.
     * </pre>
     */
    default void pause(dev.baton.v1.SchedulesPauseRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesPauseResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPauseMethod(), responseObserver);
    }

    /**
     * <pre>
     * Ends a pause. That there is none is not an error.
     * </pre>
     */
    default void resume(dev.baton.v1.SchedulesResumeRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesResumeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getResumeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Runs it once, now, beside its ticks; also while it is paused.
     * </pre>
     */
    default void trigger(dev.baton.v1.SchedulesTriggerRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesTriggerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getTriggerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Runs the ticks of a past range that have no outcome yet, exempt from misfire and catch-up. More than
     * 1,000 of them: INVALID_ARGUMENT, and none is run.
     * </pre>
     */
    default void backfill(dev.baton.v1.SchedulesBackfillRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesBackfillResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBackfillMethod(), responseObserver);
    }

    /**
     * <pre>
     * The next ticks of a schedule, or of one that is not stored. Changes nothing.
     * </pre>
     */
    default void preview(dev.baton.v1.SchedulesPreviewRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesPreviewResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPreviewMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service Schedules.
   * <pre>
   * Manages schedules; answers on any pod, whoever leads.
   * A schedule belongs to the source that made it: the configuration file or this API. One that belongs to
   * the file is changed there only: Update and Delete answer FAILED_PRECONDITION. Pause, Resume,
   * Trigger and Backfill work on both. Unknown or retired names are NOT_FOUND, except with Get.
   * </pre>
   */
  public static abstract class SchedulesImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return SchedulesGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service Schedules.
   * <pre>
   * Manages schedules; answers on any pod, whoever leads.
   * A schedule belongs to the source that made it: the configuration file or this API. One that belongs to
   * the file is changed there only: Update and Delete answer FAILED_PRECONDITION. Pause, Resume,
   * Trigger and Backfill work on both. Unknown or retired names are NOT_FOUND, except with Get.
   * </pre>
   */
  public static final class SchedulesStub
      extends io.grpc.stub.AbstractAsyncStub<SchedulesStub> {
    private SchedulesStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SchedulesStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SchedulesStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a schedule. Ticks count from now on. ALREADY_EXISTS if the name is taken by a live one;
     * INVALID_ARGUMENT for, among others, a cron that never fires.
     * </pre>
     */
    public void create(dev.baton.v1.SchedulesCreateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesCreateResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * One schedule, also a retired one.
     * </pre>
     */
    public void get(dev.baton.v1.SchedulesGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesGetResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Schedules, by name.
     * </pre>
     */
    public void list(dev.baton.v1.SchedulesListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesListResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Replaces the whole definition: a field left unset gets its default. If the timing changes, ticks count
     * from now on; otherwise nothing is lost. A pause is kept.
     * </pre>
     */
    public void update(dev.baton.v1.SchedulesUpdateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesUpdateResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Retires a schedule: no more ticks, runs that wait are skipped as OPERATOR, the history stays.
     * </pre>
     */
    public void delete(dev.baton.v1.SchedulesDeleteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesDeleteResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stops a schedule until Resume; ticks meanwhile are recorded as skipped, reason PAUSED. Runs that were
     * begun go on. Pausing again replaces the note.
     * </pre>
     */
    public void pause(dev.baton.v1.SchedulesPauseRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesPauseResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPauseMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Ends a pause. That there is none is not an error.
     * </pre>
     */
    public void resume(dev.baton.v1.SchedulesResumeRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesResumeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getResumeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Runs it once, now, beside its ticks; also while it is paused.
     * </pre>
     */
    public void trigger(dev.baton.v1.SchedulesTriggerRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesTriggerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getTriggerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Runs the ticks of a past range that have no outcome yet, exempt from misfire and catch-up. More than
     * 1,000 of them: INVALID_ARGUMENT, and none is run.
     * </pre>
     */
    public void backfill(dev.baton.v1.SchedulesBackfillRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesBackfillResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBackfillMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The next ticks of a schedule, or of one that is not stored. Changes nothing.
     * </pre>
     */
    public void preview(dev.baton.v1.SchedulesPreviewRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesPreviewResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPreviewMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service Schedules.
   * <pre>
   * Manages schedules; answers on any pod, whoever leads.
   * A schedule belongs to the source that made it: the configuration file or this API. One that belongs to
   * the file is changed there only: Update and Delete answer FAILED_PRECONDITION. Pause, Resume,
   * Trigger and Backfill work on both. Unknown or retired names are NOT_FOUND, except with Get.
   * </pre>
   */
  public static final class SchedulesBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<SchedulesBlockingV2Stub> {
    private SchedulesBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SchedulesBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SchedulesBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a schedule. Ticks count from now on. ALREADY_EXISTS if the name is taken by a live one;
     * INVALID_ARGUMENT for, among others, a cron that never fires.
     * </pre>
     */
    public dev.baton.v1.SchedulesCreateResponse create(dev.baton.v1.SchedulesCreateRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * One schedule, also a retired one.
     * </pre>
     */
    public dev.baton.v1.SchedulesGetResponse get(dev.baton.v1.SchedulesGetRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Schedules, by name.
     * </pre>
     */
    public dev.baton.v1.SchedulesListResponse list(dev.baton.v1.SchedulesListRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Replaces the whole definition: a field left unset gets its default. If the timing changes, ticks count
     * from now on; otherwise nothing is lost. A pause is kept.
     * </pre>
     */
    public dev.baton.v1.SchedulesUpdateResponse update(dev.baton.v1.SchedulesUpdateRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Retires a schedule: no more ticks, runs that wait are skipped as OPERATOR, the history stays.
     * </pre>
     */
    public dev.baton.v1.SchedulesDeleteResponse delete(dev.baton.v1.SchedulesDeleteRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stops a schedule until Resume; ticks meanwhile are recorded as skipped, reason PAUSED. Runs that were
     * begun go on. Pausing again replaces the note.
     * </pre>
     */
    public dev.baton.v1.SchedulesPauseResponse pause(dev.baton.v1.SchedulesPauseRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPauseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Ends a pause. That there is none is not an error.
     * </pre>
     */
    public dev.baton.v1.SchedulesResumeResponse resume(dev.baton.v1.SchedulesResumeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getResumeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs it once, now, beside its ticks; also while it is paused.
     * </pre>
     */
    public dev.baton.v1.SchedulesTriggerResponse trigger(dev.baton.v1.SchedulesTriggerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getTriggerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs the ticks of a past range that have no outcome yet, exempt from misfire and catch-up. More than
     * 1,000 of them: INVALID_ARGUMENT, and none is run.
     * </pre>
     */
    public dev.baton.v1.SchedulesBackfillResponse backfill(dev.baton.v1.SchedulesBackfillRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBackfillMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The next ticks of a schedule, or of one that is not stored. Changes nothing.
     * </pre>
     */
    public dev.baton.v1.SchedulesPreviewResponse preview(dev.baton.v1.SchedulesPreviewRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPreviewMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service Schedules.
   * <pre>
   * Manages schedules; answers on any pod, whoever leads.
   * A schedule belongs to the source that made it: the configuration file or this API. One that belongs to
   * the file is changed there only: Update and Delete answer FAILED_PRECONDITION. Pause, Resume,
   * Trigger and Backfill work on both. Unknown or retired names are NOT_FOUND, except with Get.
   * </pre>
   */
  public static final class SchedulesBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<SchedulesBlockingStub> {
    private SchedulesBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SchedulesBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SchedulesBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a schedule. Ticks count from now on. ALREADY_EXISTS if the name is taken by a live one;
     * INVALID_ARGUMENT for, among others, a cron that never fires.
     * </pre>
     */
    public dev.baton.v1.SchedulesCreateResponse create(dev.baton.v1.SchedulesCreateRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * One schedule, also a retired one.
     * </pre>
     */
    public dev.baton.v1.SchedulesGetResponse get(dev.baton.v1.SchedulesGetRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Schedules, by name.
     * </pre>
     */
    public dev.baton.v1.SchedulesListResponse list(dev.baton.v1.SchedulesListRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Replaces the whole definition: a field left unset gets its default. If the timing changes, ticks count
     * from now on; otherwise nothing is lost. A pause is kept.
     * </pre>
     */
    public dev.baton.v1.SchedulesUpdateResponse update(dev.baton.v1.SchedulesUpdateRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Retires a schedule: no more ticks, runs that wait are skipped as OPERATOR, the history stays.
     * </pre>
     */
    public dev.baton.v1.SchedulesDeleteResponse delete(dev.baton.v1.SchedulesDeleteRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stops a schedule until Resume; ticks meanwhile are recorded as skipped, reason PAUSED. Runs that were
     * begun go on. Pausing again replaces the note.
     * </pre>
     */
    public dev.baton.v1.SchedulesPauseResponse pause(dev.baton.v1.SchedulesPauseRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPauseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Ends a pause. That there is none is not an error.
     * </pre>
     */
    public dev.baton.v1.SchedulesResumeResponse resume(dev.baton.v1.SchedulesResumeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getResumeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs it once, now, beside its ticks; also while it is paused.
     * </pre>
     */
    public dev.baton.v1.SchedulesTriggerResponse trigger(dev.baton.v1.SchedulesTriggerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getTriggerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs the ticks of a past range that have no outcome yet, exempt from misfire and catch-up. More than
     * 1,000 of them: INVALID_ARGUMENT, and none is run.
     * </pre>
     */
    public dev.baton.v1.SchedulesBackfillResponse backfill(dev.baton.v1.SchedulesBackfillRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBackfillMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The next ticks of a schedule, or of one that is not stored. Changes nothing.
     * </pre>
     */
    public dev.baton.v1.SchedulesPreviewResponse preview(dev.baton.v1.SchedulesPreviewRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPreviewMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service Schedules.
   * <pre>
   * Manages schedules; answers on any pod, whoever leads.
   * A schedule belongs to the source that made it: the configuration file or this API. One that belongs to
   * the file is changed there only: Update and Delete answer FAILED_PRECONDITION. Pause, Resume,
   * Trigger and Backfill work on both. Unknown or retired names are NOT_FOUND, except with Get.
   * </pre>
   */
  public static final class SchedulesFutureStub
      extends io.grpc.stub.AbstractFutureStub<SchedulesFutureStub> {
    private SchedulesFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SchedulesFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SchedulesFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a schedule. Ticks count from now on. ALREADY_EXISTS if the name is taken by a live one;
     * INVALID_ARGUMENT for, among others, a cron that never fires.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesCreateResponse> create(
        dev.baton.v1.SchedulesCreateRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * One schedule, also a retired one.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesGetResponse> get(
        dev.baton.v1.SchedulesGetRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Schedules, by name.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesListResponse> list(
        dev.baton.v1.SchedulesListRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Replaces the whole definition: a field left unset gets its default. If the timing changes, ticks count
     * from now on; otherwise nothing is lost. A pause is kept.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesUpdateResponse> update(
        dev.baton.v1.SchedulesUpdateRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Retires a schedule: no more ticks, runs that wait are skipped as OPERATOR, the history stays.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesDeleteResponse> delete(
        dev.baton.v1.SchedulesDeleteRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Stops a schedule until Resume; ticks meanwhile are recorded as skipped, reason PAUSED. Runs that were
     * begun go on. Pausing again replaces the note.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesPauseResponse> pause(
        dev.baton.v1.SchedulesPauseRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPauseMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Ends a pause. That there is none is not an error.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesResumeResponse> resume(
        dev.baton.v1.SchedulesResumeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getResumeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Runs it once, now, beside its ticks; also while it is paused.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesTriggerResponse> trigger(
        dev.baton.v1.SchedulesTriggerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getTriggerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Runs the ticks of a past range that have no outcome yet, exempt from misfire and catch-up. More than
     * 1,000 of them: INVALID_ARGUMENT, and none is run.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesBackfillResponse> backfill(
        dev.baton.v1.SchedulesBackfillRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBackfillMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The next ticks of a schedule, or of one that is not stored. Changes nothing.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SchedulesPreviewResponse> preview(
        dev.baton.v1.SchedulesPreviewRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPreviewMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE = 0;
  private static final int METHODID_GET = 1;
  private static final int METHODID_LIST = 2;
  private static final int METHODID_UPDATE = 3;
  private static final int METHODID_DELETE = 4;
  private static final int METHODID_PAUSE = 5;
  private static final int METHODID_RESUME = 6;
  private static final int METHODID_TRIGGER = 7;
  private static final int METHODID_BACKFILL = 8;
  private static final int METHODID_PREVIEW = 9;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final AsyncService serviceImpl;
    private final int methodId;

    MethodHandlers(AsyncService serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_CREATE:
          serviceImpl.create((dev.baton.v1.SchedulesCreateRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesCreateResponse>) responseObserver);
          break;
        case METHODID_GET:
          serviceImpl.get((dev.baton.v1.SchedulesGetRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesGetResponse>) responseObserver);
          break;
        case METHODID_LIST:
          serviceImpl.list((dev.baton.v1.SchedulesListRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesListResponse>) responseObserver);
          break;
        case METHODID_UPDATE:
          serviceImpl.update((dev.baton.v1.SchedulesUpdateRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesUpdateResponse>) responseObserver);
          break;
        case METHODID_DELETE:
          serviceImpl.delete((dev.baton.v1.SchedulesDeleteRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesDeleteResponse>) responseObserver);
          break;
        case METHODID_PAUSE:
          serviceImpl.pause((dev.baton.v1.SchedulesPauseRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesPauseResponse>) responseObserver);
          break;
        case METHODID_RESUME:
          serviceImpl.resume((dev.baton.v1.SchedulesResumeRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesResumeResponse>) responseObserver);
          break;
        case METHODID_TRIGGER:
          serviceImpl.trigger((dev.baton.v1.SchedulesTriggerRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesTriggerResponse>) responseObserver);
          break;
        case METHODID_BACKFILL:
          serviceImpl.backfill((dev.baton.v1.SchedulesBackfillRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesBackfillResponse>) responseObserver);
          break;
        case METHODID_PREVIEW:
          serviceImpl.preview((dev.baton.v1.SchedulesPreviewRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SchedulesPreviewResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getCreateMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesCreateRequest,
              dev.baton.v1.SchedulesCreateResponse>(
                service, METHODID_CREATE)))
        .addMethod(
          getGetMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesGetRequest,
              dev.baton.v1.SchedulesGetResponse>(
                service, METHODID_GET)))
        .addMethod(
          getListMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesListRequest,
              dev.baton.v1.SchedulesListResponse>(
                service, METHODID_LIST)))
        .addMethod(
          getUpdateMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesUpdateRequest,
              dev.baton.v1.SchedulesUpdateResponse>(
                service, METHODID_UPDATE)))
        .addMethod(
          getDeleteMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesDeleteRequest,
              dev.baton.v1.SchedulesDeleteResponse>(
                service, METHODID_DELETE)))
        .addMethod(
          getPauseMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesPauseRequest,
              dev.baton.v1.SchedulesPauseResponse>(
                service, METHODID_PAUSE)))
        .addMethod(
          getResumeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesResumeRequest,
              dev.baton.v1.SchedulesResumeResponse>(
                service, METHODID_RESUME)))
        .addMethod(
          getTriggerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesTriggerRequest,
              dev.baton.v1.SchedulesTriggerResponse>(
                service, METHODID_TRIGGER)))
        .addMethod(
          getBackfillMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesBackfillRequest,
              dev.baton.v1.SchedulesBackfillResponse>(
                service, METHODID_BACKFILL)))
        .addMethod(
          getPreviewMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SchedulesPreviewRequest,
              dev.baton.v1.SchedulesPreviewResponse>(
                service, METHODID_PREVIEW)))
        .build();
  }

  private static abstract class SchedulesBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    SchedulesBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.SchedulesOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("Schedules");
    }
  }

  private static final class SchedulesFileDescriptorSupplier
      extends SchedulesBaseDescriptorSupplier {
    SchedulesFileDescriptorSupplier() {}
  }

  private static final class SchedulesMethodDescriptorSupplier
      extends SchedulesBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    SchedulesMethodDescriptorSupplier(java.lang.String methodName) {
      this.methodName = methodName;
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.MethodDescriptor getMethodDescriptor() {
      return getServiceDescriptor().findMethodByName(methodName);
    }
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (SchedulesGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new SchedulesFileDescriptorSupplier())
              .addMethod(getCreateMethod())
              .addMethod(getGetMethod())
              .addMethod(getListMethod())
              .addMethod(getUpdateMethod())
              .addMethod(getDeleteMethod())
              .addMethod(getPauseMethod())
              .addMethod(getResumeMethod())
              .addMethod(getTriggerMethod())
              .addMethod(getBackfillMethod())
              .addMethod(getPreviewMethod())
              .build();
        }
      }
    }
    return result;
  }
}
