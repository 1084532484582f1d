package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * The app implements it; the sidecar calls it. Calls for different groups are independent of each other
 * and may come at the same time. Within one group the sidecar keeps this order:
 *   1. OnBecomeLeader opens a term. No Execute of that term comes before it was answered with OK.
 *   2. Execute, any number, at most `app.max_concurrent` (64) at once over all groups.
 *   3. OnLoseLeadership closes the term. It comes only after OnBecomeLeader has ended (answered, failed or
 *      timed out), and after the open Execute calls have ended or were cancelled.
 * A message of an old term may still arrive late, over a connection that was slow. Therefore remember per
 * group the highest epoch you have lost; ignore (answer OK, do nothing) any OnBecomeLeader whose epoch is
 * not above it, and answer UNAVAILABLE to such an Execute.
 * Leading means: from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of the
 * trust time, whichever comes first. The trust time begins with `trusted_for` and is renewed by
 * Leadership.Watch. An app that does nothing outside Execute may leave the trust time alone: its
 * Execute calls are cancelled when the term ends. An app that acts as leader by itself must watch it.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class AppCallbackGrpc {

  private AppCallbackGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.AppCallback";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.OnBecomeLeaderRequest,
      dev.baton.v1.OnBecomeLeaderResponse> getOnBecomeLeaderMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "OnBecomeLeader",
      requestType = dev.baton.v1.OnBecomeLeaderRequest.class,
      responseType = dev.baton.v1.OnBecomeLeaderResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.OnBecomeLeaderRequest,
      dev.baton.v1.OnBecomeLeaderResponse> getOnBecomeLeaderMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.OnBecomeLeaderRequest, dev.baton.v1.OnBecomeLeaderResponse> getOnBecomeLeaderMethod;
    if ((getOnBecomeLeaderMethod = AppCallbackGrpc.getOnBecomeLeaderMethod) == null) {
      synchronized (AppCallbackGrpc.class) {
        if ((getOnBecomeLeaderMethod = AppCallbackGrpc.getOnBecomeLeaderMethod) == null) {
          AppCallbackGrpc.getOnBecomeLeaderMethod = getOnBecomeLeaderMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.OnBecomeLeaderRequest, dev.baton.v1.OnBecomeLeaderResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "OnBecomeLeader"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.OnBecomeLeaderRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.OnBecomeLeaderResponse.getDefaultInstance()))
              .setSchemaDescriptor(new AppCallbackMethodDescriptorSupplier("OnBecomeLeader"))
              .build();
        }
      }
    }
    return getOnBecomeLeaderMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.OnLoseLeadershipRequest,
      dev.baton.v1.OnLoseLeadershipResponse> getOnLoseLeadershipMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "OnLoseLeadership",
      requestType = dev.baton.v1.OnLoseLeadershipRequest.class,
      responseType = dev.baton.v1.OnLoseLeadershipResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.OnLoseLeadershipRequest,
      dev.baton.v1.OnLoseLeadershipResponse> getOnLoseLeadershipMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.OnLoseLeadershipRequest, dev.baton.v1.OnLoseLeadershipResponse> getOnLoseLeadershipMethod;
    if ((getOnLoseLeadershipMethod = AppCallbackGrpc.getOnLoseLeadershipMethod) == null) {
      synchronized (AppCallbackGrpc.class) {
        if ((getOnLoseLeadershipMethod = AppCallbackGrpc.getOnLoseLeadershipMethod) == null) {
          AppCallbackGrpc.getOnLoseLeadershipMethod = getOnLoseLeadershipMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.OnLoseLeadershipRequest, dev.baton.v1.OnLoseLeadershipResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "OnLoseLeadership"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.OnLoseLeadershipRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.OnLoseLeadershipResponse.getDefaultInstance()))
              .setSchemaDescriptor(new AppCallbackMethodDescriptorSupplier("OnLoseLeadership"))
              .build();
        }
      }
    }
    return getOnLoseLeadershipMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.ExecuteRequest,
      dev.baton.v1.ExecuteResponse> getExecuteMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Execute",
      requestType = dev.baton.v1.ExecuteRequest.class,
      responseType = dev.baton.v1.ExecuteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.ExecuteRequest,
      dev.baton.v1.ExecuteResponse> getExecuteMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.ExecuteRequest, dev.baton.v1.ExecuteResponse> getExecuteMethod;
    if ((getExecuteMethod = AppCallbackGrpc.getExecuteMethod) == null) {
      synchronized (AppCallbackGrpc.class) {
        if ((getExecuteMethod = AppCallbackGrpc.getExecuteMethod) == null) {
          AppCallbackGrpc.getExecuteMethod = getExecuteMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.ExecuteRequest, dev.baton.v1.ExecuteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Execute"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.ExecuteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.ExecuteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new AppCallbackMethodDescriptorSupplier("Execute"))
              .build();
        }
      }
    }
    return getExecuteMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static AppCallbackStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AppCallbackStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AppCallbackStub>() {
        @java.lang.Override
        public AppCallbackStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AppCallbackStub(channel, callOptions);
        }
      };
    return AppCallbackStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static AppCallbackBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AppCallbackBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AppCallbackBlockingV2Stub>() {
        @java.lang.Override
        public AppCallbackBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AppCallbackBlockingV2Stub(channel, callOptions);
        }
      };
    return AppCallbackBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static AppCallbackBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AppCallbackBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AppCallbackBlockingStub>() {
        @java.lang.Override
        public AppCallbackBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AppCallbackBlockingStub(channel, callOptions);
        }
      };
    return AppCallbackBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static AppCallbackFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<AppCallbackFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<AppCallbackFutureStub>() {
        @java.lang.Override
        public AppCallbackFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new AppCallbackFutureStub(channel, callOptions);
        }
      };
    return AppCallbackFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * The app implements it; the sidecar calls it. Calls for different groups are independent of each other
   * and may come at the same time. Within one group the sidecar keeps this order:
   *   1. OnBecomeLeader opens a term. No Execute of that term comes before it was answered with OK.
   *   2. Execute, any number, at most `app.max_concurrent` (64) at once over all groups.
   *   3. OnLoseLeadership closes the term. It comes only after OnBecomeLeader has ended (answered, failed or
   *      timed out), and after the open Execute calls have ended or were cancelled.
   * A message of an old term may still arrive late, over a connection that was slow. Therefore remember per
   * group the highest epoch you have lost; ignore (answer OK, do nothing) any OnBecomeLeader whose epoch is
   * not above it, and answer UNAVAILABLE to such an Execute.
   * Leading means: from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of the
   * trust time, whichever comes first. The trust time begins with `trusted_for` and is renewed by
   * Leadership.Watch. An app that does nothing outside Execute may leave the trust time alone: its
   * Execute calls are cancelled when the term ends. An app that acts as leader by itself must watch it.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * This app leads the group now. Answer when ready for work, within `election.callback_timeout` (10 s);
     * trust is renewed meanwhile, but ends if not. Any error, or no answer in time: the sidecar steps
     * down, calls OnLoseLeadership, and another pod takes over.
     * </pre>
     */
    default void onBecomeLeader(dev.baton.v1.OnBecomeLeaderRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.OnBecomeLeaderResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getOnBecomeLeaderMethod(), responseObserver);
    }

    /**
     * <pre>
     * This app no longer leads the group. Stop acting as leader, then answer; the answer is what lets the
     * successor begin at once instead of waiting out its grace. It may come without an OnBecomeLeader
     * before it, more than once, and for a term that was never known here; answer OK each time.
     * `context.epoch == 0` is sent by a sidecar that has just started and knows of no term: whatever term
     * you believe in for this group is over. It does not count as a lost epoch: the next OnBecomeLeader
     * has an epoch above every earlier one.
     * </pre>
     */
    default void onLoseLeadership(dev.baton.v1.OnLoseLeadershipRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.OnLoseLeadershipResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getOnLoseLeadershipMethod(), responseObserver);
    }

    /**
     * <pre>
     * Execute one attempt of one run. At least once delivered, at most once completed: the same run may come
     * again, with the same `idempotency_key`, a higher `attempt`, and the checkpoints stored so far.
     * Handlers must therefore be idempotent or use checkpoints. Several runs of one schedule may overlap
     * unless its `overlap` says otherwise.
     * For a singleton the call stays open for as long as the term lasts. It ends when the app ends it: an
     * answer, and it is called again after `restart_after`; an error, and it is called again with back-off.
     * Or the sidecar cancels it because the term ends.
     * When the call is cancelled, stop: the term is over, the run was cancelled or replaced, or its deadline
     * has passed. Nothing that this attempt writes afterwards is accepted.
     * Instead of a response a call may end with a gRPC status:
     *   UNAVAILABLE              undeliverable: uses up no retry, comes again when the app answers
     *   NOT_FOUND                this pod does not know the handler (as in a rollout): undeliverable too,
     *                            until the run is older than `skip_if_older_than`; then it has failed
     *   UNIMPLEMENTED            the same; leave it to gRPC, which says so where AppCallback is missing
     *   INVALID_ARGUMENT, FAILED_PRECONDITION, PERMISSION_DENIED, UNAUTHENTICATED, OUT_OF_RANGE, DATA_LOSS
     *                            failed for good, no retry
     *   every other code         failed, retried while the schedule's `retry` allows
     * After 20 deliveries in all, whatever their cause, the run has failed.
     * </pre>
     */
    default void execute(dev.baton.v1.ExecuteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.ExecuteResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExecuteMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service AppCallback.
   * <pre>
   * The app implements it; the sidecar calls it. Calls for different groups are independent of each other
   * and may come at the same time. Within one group the sidecar keeps this order:
   *   1. OnBecomeLeader opens a term. No Execute of that term comes before it was answered with OK.
   *   2. Execute, any number, at most `app.max_concurrent` (64) at once over all groups.
   *   3. OnLoseLeadership closes the term. It comes only after OnBecomeLeader has ended (answered, failed or
   *      timed out), and after the open Execute calls have ended or were cancelled.
   * A message of an old term may still arrive late, over a connection that was slow. Therefore remember per
   * group the highest epoch you have lost; ignore (answer OK, do nothing) any OnBecomeLeader whose epoch is
   * not above it, and answer UNAVAILABLE to such an Execute.
   * Leading means: from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of the
   * trust time, whichever comes first. The trust time begins with `trusted_for` and is renewed by
   * Leadership.Watch. An app that does nothing outside Execute may leave the trust time alone: its
   * Execute calls are cancelled when the term ends. An app that acts as leader by itself must watch it.
   * </pre>
   */
  public static abstract class AppCallbackImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return AppCallbackGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service AppCallback.
   * <pre>
   * The app implements it; the sidecar calls it. Calls for different groups are independent of each other
   * and may come at the same time. Within one group the sidecar keeps this order:
   *   1. OnBecomeLeader opens a term. No Execute of that term comes before it was answered with OK.
   *   2. Execute, any number, at most `app.max_concurrent` (64) at once over all groups.
   *   3. OnLoseLeadership closes the term. It comes only after OnBecomeLeader has ended (answered, failed or
   *      timed out), and after the open Execute calls have ended or were cancelled.
   * A message of an old term may still arrive late, over a connection that was slow. Therefore remember per
   * group the highest epoch you have lost; ignore (answer OK, do nothing) any OnBecomeLeader whose epoch is
   * not above it, and answer UNAVAILABLE to such an Execute.
   * Leading means: from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of the
   * trust time, whichever comes first. The trust time begins with `trusted_for` and is renewed by
   * Leadership.Watch. An app that does nothing outside Execute may leave the trust time alone: its
   * Execute calls are cancelled when the term ends. An app that acts as leader by itself must watch it.
   * </pre>
   */
  public static final class AppCallbackStub
      extends io.grpc.stub.AbstractAsyncStub<AppCallbackStub> {
    private AppCallbackStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AppCallbackStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AppCallbackStub(channel, callOptions);
    }

    /**
     * <pre>
     * This app leads the group now. Answer when ready for work, within `election.callback_timeout` (10 s);
     * trust is renewed meanwhile, but ends if not. Any error, or no answer in time: the sidecar steps
     * down, calls OnLoseLeadership, and another pod takes over.
     * </pre>
     */
    public void onBecomeLeader(dev.baton.v1.OnBecomeLeaderRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.OnBecomeLeaderResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getOnBecomeLeaderMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * This app no longer leads the group. Stop acting as leader, then answer; the answer is what lets the
     * successor begin at once instead of waiting out its grace. It may come without an OnBecomeLeader
     * before it, more than once, and for a term that was never known here; answer OK each time.
     * `context.epoch == 0` is sent by a sidecar that has just started and knows of no term: whatever term
     * you believe in for this group is over. It does not count as a lost epoch: the next OnBecomeLeader
     * has an epoch above every earlier one.
     * </pre>
     */
    public void onLoseLeadership(dev.baton.v1.OnLoseLeadershipRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.OnLoseLeadershipResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getOnLoseLeadershipMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Execute one attempt of one run. At least once delivered, at most once completed: the same run may come
     * again, with the same `idempotency_key`, a higher `attempt`, and the checkpoints stored so far.
     * Handlers must therefore be idempotent or use checkpoints. Several runs of one schedule may overlap
     * unless its `overlap` says otherwise.
     * For a singleton the call stays open for as long as the term lasts. It ends when the app ends it: an
     * answer, and it is called again after `restart_after`; an error, and it is called again with back-off.
     * Or the sidecar cancels it because the term ends.
     * When the call is cancelled, stop: the term is over, the run was cancelled or replaced, or its deadline
     * has passed. Nothing that this attempt writes afterwards is accepted.
     * Instead of a response a call may end with a gRPC status:
     *   UNAVAILABLE              undeliverable: uses up no retry, comes again when the app answers
     *   NOT_FOUND                this pod does not know the handler (as in a rollout): undeliverable too,
     *                            until the run is older than `skip_if_older_than`; then it has failed
     *   UNIMPLEMENTED            the same; leave it to gRPC, which says so where AppCallback is missing
     *   INVALID_ARGUMENT, FAILED_PRECONDITION, PERMISSION_DENIED, UNAUTHENTICATED, OUT_OF_RANGE, DATA_LOSS
     *                            failed for good, no retry
     *   every other code         failed, retried while the schedule's `retry` allows
     * After 20 deliveries in all, whatever their cause, the run has failed.
     * </pre>
     */
    public void execute(dev.baton.v1.ExecuteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.ExecuteResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExecuteMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service AppCallback.
   * <pre>
   * The app implements it; the sidecar calls it. Calls for different groups are independent of each other
   * and may come at the same time. Within one group the sidecar keeps this order:
   *   1. OnBecomeLeader opens a term. No Execute of that term comes before it was answered with OK.
   *   2. Execute, any number, at most `app.max_concurrent` (64) at once over all groups.
   *   3. OnLoseLeadership closes the term. It comes only after OnBecomeLeader has ended (answered, failed or
   *      timed out), and after the open Execute calls have ended or were cancelled.
   * A message of an old term may still arrive late, over a connection that was slow. Therefore remember per
   * group the highest epoch you have lost; ignore (answer OK, do nothing) any OnBecomeLeader whose epoch is
   * not above it, and answer UNAVAILABLE to such an Execute.
   * Leading means: from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of the
   * trust time, whichever comes first. The trust time begins with `trusted_for` and is renewed by
   * Leadership.Watch. An app that does nothing outside Execute may leave the trust time alone: its
   * Execute calls are cancelled when the term ends. An app that acts as leader by itself must watch it.
   * </pre>
   */
  public static final class AppCallbackBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<AppCallbackBlockingV2Stub> {
    private AppCallbackBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AppCallbackBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AppCallbackBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * This app leads the group now. Answer when ready for work, within `election.callback_timeout` (10 s);
     * trust is renewed meanwhile, but ends if not. Any error, or no answer in time: the sidecar steps
     * down, calls OnLoseLeadership, and another pod takes over.
     * </pre>
     */
    public dev.baton.v1.OnBecomeLeaderResponse onBecomeLeader(dev.baton.v1.OnBecomeLeaderRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getOnBecomeLeaderMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * This app no longer leads the group. Stop acting as leader, then answer; the answer is what lets the
     * successor begin at once instead of waiting out its grace. It may come without an OnBecomeLeader
     * before it, more than once, and for a term that was never known here; answer OK each time.
     * `context.epoch == 0` is sent by a sidecar that has just started and knows of no term: whatever term
     * you believe in for this group is over. It does not count as a lost epoch: the next OnBecomeLeader
     * has an epoch above every earlier one.
     * </pre>
     */
    public dev.baton.v1.OnLoseLeadershipResponse onLoseLeadership(dev.baton.v1.OnLoseLeadershipRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getOnLoseLeadershipMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Execute one attempt of one run. At least once delivered, at most once completed: the same run may come
     * again, with the same `idempotency_key`, a higher `attempt`, and the checkpoints stored so far.
     * Handlers must therefore be idempotent or use checkpoints. Several runs of one schedule may overlap
     * unless its `overlap` says otherwise.
     * For a singleton the call stays open for as long as the term lasts. It ends when the app ends it: an
     * answer, and it is called again after `restart_after`; an error, and it is called again with back-off.
     * Or the sidecar cancels it because the term ends.
     * When the call is cancelled, stop: the term is over, the run was cancelled or replaced, or its deadline
     * has passed. Nothing that this attempt writes afterwards is accepted.
     * Instead of a response a call may end with a gRPC status:
     *   UNAVAILABLE              undeliverable: uses up no retry, comes again when the app answers
     *   NOT_FOUND                this pod does not know the handler (as in a rollout): undeliverable too,
     *                            until the run is older than `skip_if_older_than`; then it has failed
     *   UNIMPLEMENTED            the same; leave it to gRPC, which says so where AppCallback is missing
     *   INVALID_ARGUMENT, FAILED_PRECONDITION, PERMISSION_DENIED, UNAUTHENTICATED, OUT_OF_RANGE, DATA_LOSS
     *                            failed for good, no retry
     *   every other code         failed, retried while the schedule's `retry` allows
     * After 20 deliveries in all, whatever their cause, the run has failed.
     * </pre>
     */
    public dev.baton.v1.ExecuteResponse execute(dev.baton.v1.ExecuteRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExecuteMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service AppCallback.
   * <pre>
   * The app implements it; the sidecar calls it. Calls for different groups are independent of each other
   * and may come at the same time. Within one group the sidecar keeps this order:
   *   1. OnBecomeLeader opens a term. No Execute of that term comes before it was answered with OK.
   *   2. Execute, any number, at most `app.max_concurrent` (64) at once over all groups.
   *   3. OnLoseLeadership closes the term. It comes only after OnBecomeLeader has ended (answered, failed or
   *      timed out), and after the open Execute calls have ended or were cancelled.
   * A message of an old term may still arrive late, over a connection that was slow. Therefore remember per
   * group the highest epoch you have lost; ignore (answer OK, do nothing) any OnBecomeLeader whose epoch is
   * not above it, and answer UNAVAILABLE to such an Execute.
   * Leading means: from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of the
   * trust time, whichever comes first. The trust time begins with `trusted_for` and is renewed by
   * Leadership.Watch. An app that does nothing outside Execute may leave the trust time alone: its
   * Execute calls are cancelled when the term ends. An app that acts as leader by itself must watch it.
   * </pre>
   */
  public static final class AppCallbackBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<AppCallbackBlockingStub> {
    private AppCallbackBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AppCallbackBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AppCallbackBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * This app leads the group now. Answer when ready for work, within `election.callback_timeout` (10 s);
     * trust is renewed meanwhile, but ends if not. Any error, or no answer in time: the sidecar steps
     * down, calls OnLoseLeadership, and another pod takes over.
     * </pre>
     */
    public dev.baton.v1.OnBecomeLeaderResponse onBecomeLeader(dev.baton.v1.OnBecomeLeaderRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getOnBecomeLeaderMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * This app no longer leads the group. Stop acting as leader, then answer; the answer is what lets the
     * successor begin at once instead of waiting out its grace. It may come without an OnBecomeLeader
     * before it, more than once, and for a term that was never known here; answer OK each time.
     * `context.epoch == 0` is sent by a sidecar that has just started and knows of no term: whatever term
     * you believe in for this group is over. It does not count as a lost epoch: the next OnBecomeLeader
     * has an epoch above every earlier one.
     * </pre>
     */
    public dev.baton.v1.OnLoseLeadershipResponse onLoseLeadership(dev.baton.v1.OnLoseLeadershipRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getOnLoseLeadershipMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Execute one attempt of one run. At least once delivered, at most once completed: the same run may come
     * again, with the same `idempotency_key`, a higher `attempt`, and the checkpoints stored so far.
     * Handlers must therefore be idempotent or use checkpoints. Several runs of one schedule may overlap
     * unless its `overlap` says otherwise.
     * For a singleton the call stays open for as long as the term lasts. It ends when the app ends it: an
     * answer, and it is called again after `restart_after`; an error, and it is called again with back-off.
     * Or the sidecar cancels it because the term ends.
     * When the call is cancelled, stop: the term is over, the run was cancelled or replaced, or its deadline
     * has passed. Nothing that this attempt writes afterwards is accepted.
     * Instead of a response a call may end with a gRPC status:
     *   UNAVAILABLE              undeliverable: uses up no retry, comes again when the app answers
     *   NOT_FOUND                this pod does not know the handler (as in a rollout): undeliverable too,
     *                            until the run is older than `skip_if_older_than`; then it has failed
     *   UNIMPLEMENTED            the same; leave it to gRPC, which says so where AppCallback is missing
     *   INVALID_ARGUMENT, FAILED_PRECONDITION, PERMISSION_DENIED, UNAUTHENTICATED, OUT_OF_RANGE, DATA_LOSS
     *                            failed for good, no retry
     *   every other code         failed, retried while the schedule's `retry` allows
     * After 20 deliveries in all, whatever their cause, the run has failed.
     * </pre>
     */
    public dev.baton.v1.ExecuteResponse execute(dev.baton.v1.ExecuteRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExecuteMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service AppCallback.
   * <pre>
   * The app implements it; the sidecar calls it. Calls for different groups are independent of each other
   * and may come at the same time. Within one group the sidecar keeps this order:
   *   1. OnBecomeLeader opens a term. No Execute of that term comes before it was answered with OK.
   *   2. Execute, any number, at most `app.max_concurrent` (64) at once over all groups.
   *   3. OnLoseLeadership closes the term. It comes only after OnBecomeLeader has ended (answered, failed or
   *      timed out), and after the open Execute calls have ended or were cancelled.
   * A message of an old term may still arrive late, over a connection that was slow. Therefore remember per
   * group the highest epoch you have lost; ignore (answer OK, do nothing) any OnBecomeLeader whose epoch is
   * not above it, and answer UNAVAILABLE to such an Execute.
   * Leading means: from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of the
   * trust time, whichever comes first. The trust time begins with `trusted_for` and is renewed by
   * Leadership.Watch. An app that does nothing outside Execute may leave the trust time alone: its
   * Execute calls are cancelled when the term ends. An app that acts as leader by itself must watch it.
   * </pre>
   */
  public static final class AppCallbackFutureStub
      extends io.grpc.stub.AbstractFutureStub<AppCallbackFutureStub> {
    private AppCallbackFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected AppCallbackFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new AppCallbackFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * This app leads the group now. Answer when ready for work, within `election.callback_timeout` (10 s);
     * trust is renewed meanwhile, but ends if not. Any error, or no answer in time: the sidecar steps
     * down, calls OnLoseLeadership, and another pod takes over.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.OnBecomeLeaderResponse> onBecomeLeader(
        dev.baton.v1.OnBecomeLeaderRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getOnBecomeLeaderMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * This app no longer leads the group. Stop acting as leader, then answer; the answer is what lets the
     * successor begin at once instead of waiting out its grace. It may come without an OnBecomeLeader
     * before it, more than once, and for a term that was never known here; answer OK each time.
     * `context.epoch == 0` is sent by a sidecar that has just started and knows of no term: whatever term
     * you believe in for this group is over. It does not count as a lost epoch: the next OnBecomeLeader
     * has an epoch above every earlier one.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.OnLoseLeadershipResponse> onLoseLeadership(
        dev.baton.v1.OnLoseLeadershipRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getOnLoseLeadershipMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Execute one attempt of one run. At least once delivered, at most once completed: the same run may come
     * again, with the same `idempotency_key`, a higher `attempt`, and the checkpoints stored so far.
     * Handlers must therefore be idempotent or use checkpoints. Several runs of one schedule may overlap
     * unless its `overlap` says otherwise.
     * For a singleton the call stays open for as long as the term lasts. It ends when the app ends it: an
     * answer, and it is called again after `restart_after`; an error, and it is called again with back-off.
     * Or the sidecar cancels it because the term ends.
     * When the call is cancelled, stop: the term is over, the run was cancelled or replaced, or its deadline
     * has passed. Nothing that this attempt writes afterwards is accepted.
     * Instead of a response a call may end with a gRPC status:
     *   UNAVAILABLE              undeliverable: uses up no retry, comes again when the app answers
     *   NOT_FOUND                this pod does not know the handler (as in a rollout): undeliverable too,
     *                            until the run is older than `skip_if_older_than`; then it has failed
     *   UNIMPLEMENTED            the same; leave it to gRPC, which says so where AppCallback is missing
     *   INVALID_ARGUMENT, FAILED_PRECONDITION, PERMISSION_DENIED, UNAUTHENTICATED, OUT_OF_RANGE, DATA_LOSS
     *                            failed for good, no retry
     *   every other code         failed, retried while the schedule's `retry` allows
     * After 20 deliveries in all, whatever their cause, the run has failed.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.ExecuteResponse> execute(
        dev.baton.v1.ExecuteRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExecuteMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_ON_BECOME_LEADER = 0;
  private static final int METHODID_ON_LOSE_LEADERSHIP = 1;
  private static final int METHODID_EXECUTE = 2;

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
        case METHODID_ON_BECOME_LEADER:
          serviceImpl.onBecomeLeader((dev.baton.v1.OnBecomeLeaderRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.OnBecomeLeaderResponse>) responseObserver);
          break;
        case METHODID_ON_LOSE_LEADERSHIP:
          serviceImpl.onLoseLeadership((dev.baton.v1.OnLoseLeadershipRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.OnLoseLeadershipResponse>) responseObserver);
          break;
        case METHODID_EXECUTE:
          serviceImpl.execute((dev.baton.v1.ExecuteRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.ExecuteResponse>) responseObserver);
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
          getOnBecomeLeaderMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.OnBecomeLeaderRequest,
              dev.baton.v1.OnBecomeLeaderResponse>(
                service, METHODID_ON_BECOME_LEADER)))
        .addMethod(
          getOnLoseLeadershipMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.OnLoseLeadershipRequest,
              dev.baton.v1.OnLoseLeadershipResponse>(
                service, METHODID_ON_LOSE_LEADERSHIP)))
        .addMethod(
          getExecuteMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.ExecuteRequest,
              dev.baton.v1.ExecuteResponse>(
                service, METHODID_EXECUTE)))
        .build();
  }

  private static abstract class AppCallbackBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    AppCallbackBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.Callback.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("AppCallback");
    }
  }

  private static final class AppCallbackFileDescriptorSupplier
      extends AppCallbackBaseDescriptorSupplier {
    AppCallbackFileDescriptorSupplier() {}
  }

  private static final class AppCallbackMethodDescriptorSupplier
      extends AppCallbackBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    AppCallbackMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (AppCallbackGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new AppCallbackFileDescriptorSupplier())
              .addMethod(getOnBecomeLeaderMethod())
              .addMethod(getOnLoseLeadershipMethod())
              .addMethod(getExecuteMethod())
              .build();
        }
      }
    }
    return result;
  }
}
