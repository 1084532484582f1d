package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Reads and steers runs, and records what a run wants to keep while it is still running.
 * Checkpoint and Heartbeat are called by the app from within its Execute. The rest may be called on
 * any pod, whoever leads.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class RunsGrpc {

  private RunsGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.Runs";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.RunsGetRequest,
      dev.baton.v1.RunsGetResponse> getGetMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Get",
      requestType = dev.baton.v1.RunsGetRequest.class,
      responseType = dev.baton.v1.RunsGetResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.RunsGetRequest,
      dev.baton.v1.RunsGetResponse> getGetMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.RunsGetRequest, dev.baton.v1.RunsGetResponse> getGetMethod;
    if ((getGetMethod = RunsGrpc.getGetMethod) == null) {
      synchronized (RunsGrpc.class) {
        if ((getGetMethod = RunsGrpc.getGetMethod) == null) {
          RunsGrpc.getGetMethod = getGetMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.RunsGetRequest, dev.baton.v1.RunsGetResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Get"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsGetRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsGetResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunsMethodDescriptorSupplier("Get"))
              .build();
        }
      }
    }
    return getGetMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.RunsListRequest,
      dev.baton.v1.RunsListResponse> getListMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "List",
      requestType = dev.baton.v1.RunsListRequest.class,
      responseType = dev.baton.v1.RunsListResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.RunsListRequest,
      dev.baton.v1.RunsListResponse> getListMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.RunsListRequest, dev.baton.v1.RunsListResponse> getListMethod;
    if ((getListMethod = RunsGrpc.getListMethod) == null) {
      synchronized (RunsGrpc.class) {
        if ((getListMethod = RunsGrpc.getListMethod) == null) {
          RunsGrpc.getListMethod = getListMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.RunsListRequest, dev.baton.v1.RunsListResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "List"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsListRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsListResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunsMethodDescriptorSupplier("List"))
              .build();
        }
      }
    }
    return getListMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.RunsCancelRequest,
      dev.baton.v1.RunsCancelResponse> getCancelMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Cancel",
      requestType = dev.baton.v1.RunsCancelRequest.class,
      responseType = dev.baton.v1.RunsCancelResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.RunsCancelRequest,
      dev.baton.v1.RunsCancelResponse> getCancelMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.RunsCancelRequest, dev.baton.v1.RunsCancelResponse> getCancelMethod;
    if ((getCancelMethod = RunsGrpc.getCancelMethod) == null) {
      synchronized (RunsGrpc.class) {
        if ((getCancelMethod = RunsGrpc.getCancelMethod) == null) {
          RunsGrpc.getCancelMethod = getCancelMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.RunsCancelRequest, dev.baton.v1.RunsCancelResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Cancel"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsCancelRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsCancelResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunsMethodDescriptorSupplier("Cancel"))
              .build();
        }
      }
    }
    return getCancelMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.RunsRetryRequest,
      dev.baton.v1.RunsRetryResponse> getRetryMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Retry",
      requestType = dev.baton.v1.RunsRetryRequest.class,
      responseType = dev.baton.v1.RunsRetryResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.RunsRetryRequest,
      dev.baton.v1.RunsRetryResponse> getRetryMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.RunsRetryRequest, dev.baton.v1.RunsRetryResponse> getRetryMethod;
    if ((getRetryMethod = RunsGrpc.getRetryMethod) == null) {
      synchronized (RunsGrpc.class) {
        if ((getRetryMethod = RunsGrpc.getRetryMethod) == null) {
          RunsGrpc.getRetryMethod = getRetryMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.RunsRetryRequest, dev.baton.v1.RunsRetryResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Retry"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsRetryRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsRetryResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunsMethodDescriptorSupplier("Retry"))
              .build();
        }
      }
    }
    return getRetryMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.RunsCheckpointRequest,
      dev.baton.v1.RunsCheckpointResponse> getCheckpointMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Checkpoint",
      requestType = dev.baton.v1.RunsCheckpointRequest.class,
      responseType = dev.baton.v1.RunsCheckpointResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.RunsCheckpointRequest,
      dev.baton.v1.RunsCheckpointResponse> getCheckpointMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.RunsCheckpointRequest, dev.baton.v1.RunsCheckpointResponse> getCheckpointMethod;
    if ((getCheckpointMethod = RunsGrpc.getCheckpointMethod) == null) {
      synchronized (RunsGrpc.class) {
        if ((getCheckpointMethod = RunsGrpc.getCheckpointMethod) == null) {
          RunsGrpc.getCheckpointMethod = getCheckpointMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.RunsCheckpointRequest, dev.baton.v1.RunsCheckpointResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Checkpoint"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsCheckpointRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsCheckpointResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunsMethodDescriptorSupplier("Checkpoint"))
              .build();
        }
      }
    }
    return getCheckpointMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.RunsHeartbeatRequest,
      dev.baton.v1.RunsHeartbeatResponse> getHeartbeatMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Heartbeat",
      requestType = dev.baton.v1.RunsHeartbeatRequest.class,
      responseType = dev.baton.v1.RunsHeartbeatResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.RunsHeartbeatRequest,
      dev.baton.v1.RunsHeartbeatResponse> getHeartbeatMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.RunsHeartbeatRequest, dev.baton.v1.RunsHeartbeatResponse> getHeartbeatMethod;
    if ((getHeartbeatMethod = RunsGrpc.getHeartbeatMethod) == null) {
      synchronized (RunsGrpc.class) {
        if ((getHeartbeatMethod = RunsGrpc.getHeartbeatMethod) == null) {
          RunsGrpc.getHeartbeatMethod = getHeartbeatMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.RunsHeartbeatRequest, dev.baton.v1.RunsHeartbeatResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Heartbeat"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsHeartbeatRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.RunsHeartbeatResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunsMethodDescriptorSupplier("Heartbeat"))
              .build();
        }
      }
    }
    return getHeartbeatMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static RunsStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunsStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunsStub>() {
        @java.lang.Override
        public RunsStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunsStub(channel, callOptions);
        }
      };
    return RunsStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static RunsBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunsBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunsBlockingV2Stub>() {
        @java.lang.Override
        public RunsBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunsBlockingV2Stub(channel, callOptions);
        }
      };
    return RunsBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static RunsBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunsBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunsBlockingStub>() {
        @java.lang.Override
        public RunsBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunsBlockingStub(channel, callOptions);
        }
      };
    return RunsBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static RunsFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunsFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunsFutureStub>() {
        @java.lang.Override
        public RunsFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunsFutureStub(channel, callOptions);
        }
      };
    return RunsFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Reads and steers runs, and records what a run wants to keep while it is still running.
   * Checkpoint and Heartbeat are called by the app from within its Execute. The rest may be called on
   * any pod, whoever leads.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * One run with its whole history. NOT_FOUND if it never was, or was pruned (`history.keep`).
     * </pre>
     */
    default void get(dev.baton.v1.RunsGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsGetResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMethod(), responseObserver);
    }

    /**
     * <pre>
     * Runs, newest first, without `history` and `result`.
     * </pre>
     */
    default void list(dev.baton.v1.RunsListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsListResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListMethod(), responseObserver);
    }

    /**
     * <pre>
     * Asks for a run to be ended. One that waits ends at once as skipped, reason OPERATOR. For one that
     * runs, the leader cancels its Execute; whichever is committed first, its own completion or the
     * cancellation, is its outcome. FAILED_PRECONDITION if it has ended already, or if it is the life of a
     * singleton, which ends with its term: ask for Leadership.Resign instead.
     * </pre>
     */
    default void cancel(dev.baton.v1.RunsCancelRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsCancelResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCancelMethod(), responseObserver);
    }

    /**
     * <pre>
     * Gives a failed run a new life: the same run, idempotency key and checkpoints, a higher attempt, and
     * a fresh count of retries. FAILED_PRECONDITION unless its outcome is FAILED.
     * </pre>
     */
    default void retry(dev.baton.v1.RunsRetryRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsRetryResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRetryMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stores the result of a step, so that a later attempt can skip it. Durable once answered. A step is
     * stored once: the same value again is fine, another value is refused with ALREADY_EXISTS, whose ErrorInfo
     * carries the stored one under `existing`, in base64, if it has at most 1 KiB.
     * FAILED_PRECONDITION if `run` is not the live attempt: another one has taken over, so stop.
     * </pre>
     */
    default void checkpoint(dev.baton.v1.RunsCheckpointRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsCheckpointResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCheckpointMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reports life and progress of a long run. For a singleton it counts as an execution when staleness is
     * judged (`expected_interval`). FAILED_PRECONDITION if `run` is not the live attempt.
     * </pre>
     */
    default void heartbeat(dev.baton.v1.RunsHeartbeatRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsHeartbeatResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getHeartbeatMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service Runs.
   * <pre>
   * Reads and steers runs, and records what a run wants to keep while it is still running.
   * Checkpoint and Heartbeat are called by the app from within its Execute. The rest may be called on
   * any pod, whoever leads.
   * </pre>
   */
  public static abstract class RunsImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return RunsGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service Runs.
   * <pre>
   * Reads and steers runs, and records what a run wants to keep while it is still running.
   * Checkpoint and Heartbeat are called by the app from within its Execute. The rest may be called on
   * any pod, whoever leads.
   * </pre>
   */
  public static final class RunsStub
      extends io.grpc.stub.AbstractAsyncStub<RunsStub> {
    private RunsStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunsStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunsStub(channel, callOptions);
    }

    /**
     * <pre>
     * One run with its whole history. NOT_FOUND if it never was, or was pruned (`history.keep`).
     * </pre>
     */
    public void get(dev.baton.v1.RunsGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsGetResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Runs, newest first, without `history` and `result`.
     * </pre>
     */
    public void list(dev.baton.v1.RunsListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsListResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Asks for a run to be ended. One that waits ends at once as skipped, reason OPERATOR. For one that
     * runs, the leader cancels its Execute; whichever is committed first, its own completion or the
     * cancellation, is its outcome. FAILED_PRECONDITION if it has ended already, or if it is the life of a
     * singleton, which ends with its term: ask for Leadership.Resign instead.
     * </pre>
     */
    public void cancel(dev.baton.v1.RunsCancelRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsCancelResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCancelMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Gives a failed run a new life: the same run, idempotency key and checkpoints, a higher attempt, and
     * a fresh count of retries. FAILED_PRECONDITION unless its outcome is FAILED.
     * </pre>
     */
    public void retry(dev.baton.v1.RunsRetryRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsRetryResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRetryMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stores the result of a step, so that a later attempt can skip it. Durable once answered. A step is
     * stored once: the same value again is fine, another value is refused with ALREADY_EXISTS, whose ErrorInfo
     * carries the stored one under `existing`, in base64, if it has at most 1 KiB.
     * FAILED_PRECONDITION if `run` is not the live attempt: another one has taken over, so stop.
     * </pre>
     */
    public void checkpoint(dev.baton.v1.RunsCheckpointRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsCheckpointResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCheckpointMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reports life and progress of a long run. For a singleton it counts as an execution when staleness is
     * judged (`expected_interval`). FAILED_PRECONDITION if `run` is not the live attempt.
     * </pre>
     */
    public void heartbeat(dev.baton.v1.RunsHeartbeatRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.RunsHeartbeatResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getHeartbeatMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service Runs.
   * <pre>
   * Reads and steers runs, and records what a run wants to keep while it is still running.
   * Checkpoint and Heartbeat are called by the app from within its Execute. The rest may be called on
   * any pod, whoever leads.
   * </pre>
   */
  public static final class RunsBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<RunsBlockingV2Stub> {
    private RunsBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunsBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunsBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * One run with its whole history. NOT_FOUND if it never was, or was pruned (`history.keep`).
     * </pre>
     */
    public dev.baton.v1.RunsGetResponse get(dev.baton.v1.RunsGetRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs, newest first, without `history` and `result`.
     * </pre>
     */
    public dev.baton.v1.RunsListResponse list(dev.baton.v1.RunsListRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Asks for a run to be ended. One that waits ends at once as skipped, reason OPERATOR. For one that
     * runs, the leader cancels its Execute; whichever is committed first, its own completion or the
     * cancellation, is its outcome. FAILED_PRECONDITION if it has ended already, or if it is the life of a
     * singleton, which ends with its term: ask for Leadership.Resign instead.
     * </pre>
     */
    public dev.baton.v1.RunsCancelResponse cancel(dev.baton.v1.RunsCancelRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCancelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Gives a failed run a new life: the same run, idempotency key and checkpoints, a higher attempt, and
     * a fresh count of retries. FAILED_PRECONDITION unless its outcome is FAILED.
     * </pre>
     */
    public dev.baton.v1.RunsRetryResponse retry(dev.baton.v1.RunsRetryRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRetryMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stores the result of a step, so that a later attempt can skip it. Durable once answered. A step is
     * stored once: the same value again is fine, another value is refused with ALREADY_EXISTS, whose ErrorInfo
     * carries the stored one under `existing`, in base64, if it has at most 1 KiB.
     * FAILED_PRECONDITION if `run` is not the live attempt: another one has taken over, so stop.
     * </pre>
     */
    public dev.baton.v1.RunsCheckpointResponse checkpoint(dev.baton.v1.RunsCheckpointRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCheckpointMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reports life and progress of a long run. For a singleton it counts as an execution when staleness is
     * judged (`expected_interval`). FAILED_PRECONDITION if `run` is not the live attempt.
     * </pre>
     */
    public dev.baton.v1.RunsHeartbeatResponse heartbeat(dev.baton.v1.RunsHeartbeatRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getHeartbeatMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service Runs.
   * <pre>
   * Reads and steers runs, and records what a run wants to keep while it is still running.
   * Checkpoint and Heartbeat are called by the app from within its Execute. The rest may be called on
   * any pod, whoever leads.
   * </pre>
   */
  public static final class RunsBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<RunsBlockingStub> {
    private RunsBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunsBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunsBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * One run with its whole history. NOT_FOUND if it never was, or was pruned (`history.keep`).
     * </pre>
     */
    public dev.baton.v1.RunsGetResponse get(dev.baton.v1.RunsGetRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs, newest first, without `history` and `result`.
     * </pre>
     */
    public dev.baton.v1.RunsListResponse list(dev.baton.v1.RunsListRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Asks for a run to be ended. One that waits ends at once as skipped, reason OPERATOR. For one that
     * runs, the leader cancels its Execute; whichever is committed first, its own completion or the
     * cancellation, is its outcome. FAILED_PRECONDITION if it has ended already, or if it is the life of a
     * singleton, which ends with its term: ask for Leadership.Resign instead.
     * </pre>
     */
    public dev.baton.v1.RunsCancelResponse cancel(dev.baton.v1.RunsCancelRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCancelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Gives a failed run a new life: the same run, idempotency key and checkpoints, a higher attempt, and
     * a fresh count of retries. FAILED_PRECONDITION unless its outcome is FAILED.
     * </pre>
     */
    public dev.baton.v1.RunsRetryResponse retry(dev.baton.v1.RunsRetryRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRetryMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stores the result of a step, so that a later attempt can skip it. Durable once answered. A step is
     * stored once: the same value again is fine, another value is refused with ALREADY_EXISTS, whose ErrorInfo
     * carries the stored one under `existing`, in base64, if it has at most 1 KiB.
     * FAILED_PRECONDITION if `run` is not the live attempt: another one has taken over, so stop.
     * </pre>
     */
    public dev.baton.v1.RunsCheckpointResponse checkpoint(dev.baton.v1.RunsCheckpointRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCheckpointMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reports life and progress of a long run. For a singleton it counts as an execution when staleness is
     * judged (`expected_interval`). FAILED_PRECONDITION if `run` is not the live attempt.
     * </pre>
     */
    public dev.baton.v1.RunsHeartbeatResponse heartbeat(dev.baton.v1.RunsHeartbeatRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getHeartbeatMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service Runs.
   * <pre>
   * Reads and steers runs, and records what a run wants to keep while it is still running.
   * Checkpoint and Heartbeat are called by the app from within its Execute. The rest may be called on
   * any pod, whoever leads.
   * </pre>
   */
  public static final class RunsFutureStub
      extends io.grpc.stub.AbstractFutureStub<RunsFutureStub> {
    private RunsFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunsFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunsFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * One run with its whole history. NOT_FOUND if it never was, or was pruned (`history.keep`).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.RunsGetResponse> get(
        dev.baton.v1.RunsGetRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Runs, newest first, without `history` and `result`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.RunsListResponse> list(
        dev.baton.v1.RunsListRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Asks for a run to be ended. One that waits ends at once as skipped, reason OPERATOR. For one that
     * runs, the leader cancels its Execute; whichever is committed first, its own completion or the
     * cancellation, is its outcome. FAILED_PRECONDITION if it has ended already, or if it is the life of a
     * singleton, which ends with its term: ask for Leadership.Resign instead.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.RunsCancelResponse> cancel(
        dev.baton.v1.RunsCancelRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCancelMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Gives a failed run a new life: the same run, idempotency key and checkpoints, a higher attempt, and
     * a fresh count of retries. FAILED_PRECONDITION unless its outcome is FAILED.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.RunsRetryResponse> retry(
        dev.baton.v1.RunsRetryRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRetryMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Stores the result of a step, so that a later attempt can skip it. Durable once answered. A step is
     * stored once: the same value again is fine, another value is refused with ALREADY_EXISTS, whose ErrorInfo
     * carries the stored one under `existing`, in base64, if it has at most 1 KiB.
     * FAILED_PRECONDITION if `run` is not the live attempt: another one has taken over, so stop.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.RunsCheckpointResponse> checkpoint(
        dev.baton.v1.RunsCheckpointRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCheckpointMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reports life and progress of a long run. For a singleton it counts as an execution when staleness is
     * judged (`expected_interval`). FAILED_PRECONDITION if `run` is not the live attempt.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.RunsHeartbeatResponse> heartbeat(
        dev.baton.v1.RunsHeartbeatRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getHeartbeatMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET = 0;
  private static final int METHODID_LIST = 1;
  private static final int METHODID_CANCEL = 2;
  private static final int METHODID_RETRY = 3;
  private static final int METHODID_CHECKPOINT = 4;
  private static final int METHODID_HEARTBEAT = 5;

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
        case METHODID_GET:
          serviceImpl.get((dev.baton.v1.RunsGetRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.RunsGetResponse>) responseObserver);
          break;
        case METHODID_LIST:
          serviceImpl.list((dev.baton.v1.RunsListRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.RunsListResponse>) responseObserver);
          break;
        case METHODID_CANCEL:
          serviceImpl.cancel((dev.baton.v1.RunsCancelRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.RunsCancelResponse>) responseObserver);
          break;
        case METHODID_RETRY:
          serviceImpl.retry((dev.baton.v1.RunsRetryRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.RunsRetryResponse>) responseObserver);
          break;
        case METHODID_CHECKPOINT:
          serviceImpl.checkpoint((dev.baton.v1.RunsCheckpointRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.RunsCheckpointResponse>) responseObserver);
          break;
        case METHODID_HEARTBEAT:
          serviceImpl.heartbeat((dev.baton.v1.RunsHeartbeatRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.RunsHeartbeatResponse>) responseObserver);
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
          getGetMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.RunsGetRequest,
              dev.baton.v1.RunsGetResponse>(
                service, METHODID_GET)))
        .addMethod(
          getListMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.RunsListRequest,
              dev.baton.v1.RunsListResponse>(
                service, METHODID_LIST)))
        .addMethod(
          getCancelMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.RunsCancelRequest,
              dev.baton.v1.RunsCancelResponse>(
                service, METHODID_CANCEL)))
        .addMethod(
          getRetryMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.RunsRetryRequest,
              dev.baton.v1.RunsRetryResponse>(
                service, METHODID_RETRY)))
        .addMethod(
          getCheckpointMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.RunsCheckpointRequest,
              dev.baton.v1.RunsCheckpointResponse>(
                service, METHODID_CHECKPOINT)))
        .addMethod(
          getHeartbeatMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.RunsHeartbeatRequest,
              dev.baton.v1.RunsHeartbeatResponse>(
                service, METHODID_HEARTBEAT)))
        .build();
  }

  private static abstract class RunsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    RunsBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.RunsOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("Runs");
    }
  }

  private static final class RunsFileDescriptorSupplier
      extends RunsBaseDescriptorSupplier {
    RunsFileDescriptorSupplier() {}
  }

  private static final class RunsMethodDescriptorSupplier
      extends RunsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    RunsMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (RunsGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new RunsFileDescriptorSupplier())
              .addMethod(getGetMethod())
              .addMethod(getListMethod())
              .addMethod(getCancelMethod())
              .addMethod(getRetryMethod())
              .addMethod(getCheckpointMethod())
              .addMethod(getHeartbeatMethod())
              .build();
        }
      }
    }
    return result;
  }
}
