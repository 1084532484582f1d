package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Makes, awaits and completes deferreds; answers on any pod. A token that is not known, or whose deferred
 * was pruned (`history.keep` after its end), is NOT_FOUND.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class DeferredsGrpc {

  private DeferredsGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.Deferreds";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.DeferredsCreateRequest,
      dev.baton.v1.DeferredsCreateResponse> getCreateMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Create",
      requestType = dev.baton.v1.DeferredsCreateRequest.class,
      responseType = dev.baton.v1.DeferredsCreateResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.DeferredsCreateRequest,
      dev.baton.v1.DeferredsCreateResponse> getCreateMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.DeferredsCreateRequest, dev.baton.v1.DeferredsCreateResponse> getCreateMethod;
    if ((getCreateMethod = DeferredsGrpc.getCreateMethod) == null) {
      synchronized (DeferredsGrpc.class) {
        if ((getCreateMethod = DeferredsGrpc.getCreateMethod) == null) {
          DeferredsGrpc.getCreateMethod = getCreateMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.DeferredsCreateRequest, dev.baton.v1.DeferredsCreateResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Create"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsCreateRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsCreateResponse.getDefaultInstance()))
              .setSchemaDescriptor(new DeferredsMethodDescriptorSupplier("Create"))
              .build();
        }
      }
    }
    return getCreateMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.DeferredsAwaitRequest,
      dev.baton.v1.DeferredsAwaitResponse> getAwaitMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Await",
      requestType = dev.baton.v1.DeferredsAwaitRequest.class,
      responseType = dev.baton.v1.DeferredsAwaitResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.DeferredsAwaitRequest,
      dev.baton.v1.DeferredsAwaitResponse> getAwaitMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.DeferredsAwaitRequest, dev.baton.v1.DeferredsAwaitResponse> getAwaitMethod;
    if ((getAwaitMethod = DeferredsGrpc.getAwaitMethod) == null) {
      synchronized (DeferredsGrpc.class) {
        if ((getAwaitMethod = DeferredsGrpc.getAwaitMethod) == null) {
          DeferredsGrpc.getAwaitMethod = getAwaitMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.DeferredsAwaitRequest, dev.baton.v1.DeferredsAwaitResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Await"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsAwaitRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsAwaitResponse.getDefaultInstance()))
              .setSchemaDescriptor(new DeferredsMethodDescriptorSupplier("Await"))
              .build();
        }
      }
    }
    return getAwaitMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.DeferredsCompleteRequest,
      dev.baton.v1.DeferredsCompleteResponse> getCompleteMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Complete",
      requestType = dev.baton.v1.DeferredsCompleteRequest.class,
      responseType = dev.baton.v1.DeferredsCompleteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.DeferredsCompleteRequest,
      dev.baton.v1.DeferredsCompleteResponse> getCompleteMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.DeferredsCompleteRequest, dev.baton.v1.DeferredsCompleteResponse> getCompleteMethod;
    if ((getCompleteMethod = DeferredsGrpc.getCompleteMethod) == null) {
      synchronized (DeferredsGrpc.class) {
        if ((getCompleteMethod = DeferredsGrpc.getCompleteMethod) == null) {
          DeferredsGrpc.getCompleteMethod = getCompleteMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.DeferredsCompleteRequest, dev.baton.v1.DeferredsCompleteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Complete"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsCompleteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsCompleteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new DeferredsMethodDescriptorSupplier("Complete"))
              .build();
        }
      }
    }
    return getCompleteMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.DeferredsFailRequest,
      dev.baton.v1.DeferredsFailResponse> getFailMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Fail",
      requestType = dev.baton.v1.DeferredsFailRequest.class,
      responseType = dev.baton.v1.DeferredsFailResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.DeferredsFailRequest,
      dev.baton.v1.DeferredsFailResponse> getFailMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.DeferredsFailRequest, dev.baton.v1.DeferredsFailResponse> getFailMethod;
    if ((getFailMethod = DeferredsGrpc.getFailMethod) == null) {
      synchronized (DeferredsGrpc.class) {
        if ((getFailMethod = DeferredsGrpc.getFailMethod) == null) {
          DeferredsGrpc.getFailMethod = getFailMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.DeferredsFailRequest, dev.baton.v1.DeferredsFailResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Fail"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsFailRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsFailResponse.getDefaultInstance()))
              .setSchemaDescriptor(new DeferredsMethodDescriptorSupplier("Fail"))
              .build();
        }
      }
    }
    return getFailMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.DeferredsGetRequest,
      dev.baton.v1.DeferredsGetResponse> getGetMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Get",
      requestType = dev.baton.v1.DeferredsGetRequest.class,
      responseType = dev.baton.v1.DeferredsGetResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.DeferredsGetRequest,
      dev.baton.v1.DeferredsGetResponse> getGetMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.DeferredsGetRequest, dev.baton.v1.DeferredsGetResponse> getGetMethod;
    if ((getGetMethod = DeferredsGrpc.getGetMethod) == null) {
      synchronized (DeferredsGrpc.class) {
        if ((getGetMethod = DeferredsGrpc.getGetMethod) == null) {
          DeferredsGrpc.getGetMethod = getGetMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.DeferredsGetRequest, dev.baton.v1.DeferredsGetResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Get"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsGetRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.DeferredsGetResponse.getDefaultInstance()))
              .setSchemaDescriptor(new DeferredsMethodDescriptorSupplier("Get"))
              .build();
        }
      }
    }
    return getGetMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static DeferredsStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<DeferredsStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<DeferredsStub>() {
        @java.lang.Override
        public DeferredsStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new DeferredsStub(channel, callOptions);
        }
      };
    return DeferredsStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static DeferredsBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<DeferredsBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<DeferredsBlockingV2Stub>() {
        @java.lang.Override
        public DeferredsBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new DeferredsBlockingV2Stub(channel, callOptions);
        }
      };
    return DeferredsBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static DeferredsBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<DeferredsBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<DeferredsBlockingStub>() {
        @java.lang.Override
        public DeferredsBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new DeferredsBlockingStub(channel, callOptions);
        }
      };
    return DeferredsBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static DeferredsFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<DeferredsFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<DeferredsFutureStub>() {
        @java.lang.Override
        public DeferredsFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new DeferredsFutureStub(channel, callOptions);
        }
      };
    return DeferredsFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Makes, awaits and completes deferreds; answers on any pod. A token that is not known, or whose deferred
   * was pruned (`history.keep` after its end), is NOT_FOUND.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Makes a deferred, or gives the same one again: a run is given the same token for the same name by every
     * attempt, so that awaiting survives a change of leader. Without a run the name alone identifies it.
     * </pre>
     */
    default void create(dev.baton.v1.DeferredsCreateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsCreateResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateMethod(), responseObserver);
    }

    /**
     * <pre>
     * Waits until the deferred is no longer pending. Also a failed or expired one is an answer, not an error.
     * DEADLINE_EXCEEDED when it is still pending after `timeout`: ask again.
     * </pre>
     */
    default void await(dev.baton.v1.DeferredsAwaitRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsAwaitResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAwaitMethod(), responseObserver);
    }

    /**
     * <pre>
     * Completes it with a value. ALREADY_EXISTS if it was completed with another value, failed or expired: that
     * is left standing, and its value, if it has at most 1 KiB, is in the ErrorInfo under `existing`, in
     * base64. The same value again is fine.
     * </pre>
     */
    default void complete(dev.baton.v1.DeferredsCompleteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsCompleteResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCompleteMethod(), responseObserver);
    }

    /**
     * <pre>
     * Completes it with an error. ALREADY_EXISTS if it was completed, expired, or failed with another error:
     * that is left standing. The same error again is fine.
     * </pre>
     */
    default void fail(dev.baton.v1.DeferredsFailRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsFailResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getFailMethod(), responseObserver);
    }

    /**
     * <pre>
     * The deferred as it is now.
     * </pre>
     */
    default void get(dev.baton.v1.DeferredsGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsGetResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service Deferreds.
   * <pre>
   * Makes, awaits and completes deferreds; answers on any pod. A token that is not known, or whose deferred
   * was pruned (`history.keep` after its end), is NOT_FOUND.
   * </pre>
   */
  public static abstract class DeferredsImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return DeferredsGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service Deferreds.
   * <pre>
   * Makes, awaits and completes deferreds; answers on any pod. A token that is not known, or whose deferred
   * was pruned (`history.keep` after its end), is NOT_FOUND.
   * </pre>
   */
  public static final class DeferredsStub
      extends io.grpc.stub.AbstractAsyncStub<DeferredsStub> {
    private DeferredsStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected DeferredsStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new DeferredsStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a deferred, or gives the same one again: a run is given the same token for the same name by every
     * attempt, so that awaiting survives a change of leader. Without a run the name alone identifies it.
     * </pre>
     */
    public void create(dev.baton.v1.DeferredsCreateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsCreateResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Waits until the deferred is no longer pending. Also a failed or expired one is an answer, not an error.
     * DEADLINE_EXCEEDED when it is still pending after `timeout`: ask again.
     * </pre>
     */
    public void await(dev.baton.v1.DeferredsAwaitRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsAwaitResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAwaitMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Completes it with a value. ALREADY_EXISTS if it was completed with another value, failed or expired: that
     * is left standing, and its value, if it has at most 1 KiB, is in the ErrorInfo under `existing`, in
     * base64. The same value again is fine.
     * </pre>
     */
    public void complete(dev.baton.v1.DeferredsCompleteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsCompleteResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCompleteMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Completes it with an error. ALREADY_EXISTS if it was completed, expired, or failed with another error:
     * that is left standing. The same error again is fine.
     * </pre>
     */
    public void fail(dev.baton.v1.DeferredsFailRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsFailResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getFailMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The deferred as it is now.
     * </pre>
     */
    public void get(dev.baton.v1.DeferredsGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsGetResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service Deferreds.
   * <pre>
   * Makes, awaits and completes deferreds; answers on any pod. A token that is not known, or whose deferred
   * was pruned (`history.keep` after its end), is NOT_FOUND.
   * </pre>
   */
  public static final class DeferredsBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<DeferredsBlockingV2Stub> {
    private DeferredsBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected DeferredsBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new DeferredsBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a deferred, or gives the same one again: a run is given the same token for the same name by every
     * attempt, so that awaiting survives a change of leader. Without a run the name alone identifies it.
     * </pre>
     */
    public dev.baton.v1.DeferredsCreateResponse create(dev.baton.v1.DeferredsCreateRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Waits until the deferred is no longer pending. Also a failed or expired one is an answer, not an error.
     * DEADLINE_EXCEEDED when it is still pending after `timeout`: ask again.
     * </pre>
     */
    public dev.baton.v1.DeferredsAwaitResponse await(dev.baton.v1.DeferredsAwaitRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAwaitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Completes it with a value. ALREADY_EXISTS if it was completed with another value, failed or expired: that
     * is left standing, and its value, if it has at most 1 KiB, is in the ErrorInfo under `existing`, in
     * base64. The same value again is fine.
     * </pre>
     */
    public dev.baton.v1.DeferredsCompleteResponse complete(dev.baton.v1.DeferredsCompleteRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCompleteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Completes it with an error. ALREADY_EXISTS if it was completed, expired, or failed with another error:
     * that is left standing. The same error again is fine.
     * </pre>
     */
    public dev.baton.v1.DeferredsFailResponse fail(dev.baton.v1.DeferredsFailRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getFailMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The deferred as it is now.
     * </pre>
     */
    public dev.baton.v1.DeferredsGetResponse get(dev.baton.v1.DeferredsGetRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service Deferreds.
   * <pre>
   * Makes, awaits and completes deferreds; answers on any pod. A token that is not known, or whose deferred
   * was pruned (`history.keep` after its end), is NOT_FOUND.
   * </pre>
   */
  public static final class DeferredsBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<DeferredsBlockingStub> {
    private DeferredsBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected DeferredsBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new DeferredsBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a deferred, or gives the same one again: a run is given the same token for the same name by every
     * attempt, so that awaiting survives a change of leader. Without a run the name alone identifies it.
     * </pre>
     */
    public dev.baton.v1.DeferredsCreateResponse create(dev.baton.v1.DeferredsCreateRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Waits until the deferred is no longer pending. Also a failed or expired one is an answer, not an error.
     * DEADLINE_EXCEEDED when it is still pending after `timeout`: ask again.
     * </pre>
     */
    public dev.baton.v1.DeferredsAwaitResponse await(dev.baton.v1.DeferredsAwaitRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAwaitMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Completes it with a value. ALREADY_EXISTS if it was completed with another value, failed or expired: that
     * is left standing, and its value, if it has at most 1 KiB, is in the ErrorInfo under `existing`, in
     * base64. The same value again is fine.
     * </pre>
     */
    public dev.baton.v1.DeferredsCompleteResponse complete(dev.baton.v1.DeferredsCompleteRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCompleteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Completes it with an error. ALREADY_EXISTS if it was completed, expired, or failed with another error:
     * that is left standing. The same error again is fine.
     * </pre>
     */
    public dev.baton.v1.DeferredsFailResponse fail(dev.baton.v1.DeferredsFailRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getFailMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The deferred as it is now.
     * </pre>
     */
    public dev.baton.v1.DeferredsGetResponse get(dev.baton.v1.DeferredsGetRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service Deferreds.
   * <pre>
   * Makes, awaits and completes deferreds; answers on any pod. A token that is not known, or whose deferred
   * was pruned (`history.keep` after its end), is NOT_FOUND.
   * </pre>
   */
  public static final class DeferredsFutureStub
      extends io.grpc.stub.AbstractFutureStub<DeferredsFutureStub> {
    private DeferredsFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected DeferredsFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new DeferredsFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Makes a deferred, or gives the same one again: a run is given the same token for the same name by every
     * attempt, so that awaiting survives a change of leader. Without a run the name alone identifies it.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.DeferredsCreateResponse> create(
        dev.baton.v1.DeferredsCreateRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Waits until the deferred is no longer pending. Also a failed or expired one is an answer, not an error.
     * DEADLINE_EXCEEDED when it is still pending after `timeout`: ask again.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.DeferredsAwaitResponse> await(
        dev.baton.v1.DeferredsAwaitRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAwaitMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Completes it with a value. ALREADY_EXISTS if it was completed with another value, failed or expired: that
     * is left standing, and its value, if it has at most 1 KiB, is in the ErrorInfo under `existing`, in
     * base64. The same value again is fine.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.DeferredsCompleteResponse> complete(
        dev.baton.v1.DeferredsCompleteRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCompleteMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Completes it with an error. ALREADY_EXISTS if it was completed, expired, or failed with another error:
     * that is left standing. The same error again is fine.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.DeferredsFailResponse> fail(
        dev.baton.v1.DeferredsFailRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getFailMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The deferred as it is now.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.DeferredsGetResponse> get(
        dev.baton.v1.DeferredsGetRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE = 0;
  private static final int METHODID_AWAIT = 1;
  private static final int METHODID_COMPLETE = 2;
  private static final int METHODID_FAIL = 3;
  private static final int METHODID_GET = 4;

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
          serviceImpl.create((dev.baton.v1.DeferredsCreateRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsCreateResponse>) responseObserver);
          break;
        case METHODID_AWAIT:
          serviceImpl.await((dev.baton.v1.DeferredsAwaitRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsAwaitResponse>) responseObserver);
          break;
        case METHODID_COMPLETE:
          serviceImpl.complete((dev.baton.v1.DeferredsCompleteRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsCompleteResponse>) responseObserver);
          break;
        case METHODID_FAIL:
          serviceImpl.fail((dev.baton.v1.DeferredsFailRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsFailResponse>) responseObserver);
          break;
        case METHODID_GET:
          serviceImpl.get((dev.baton.v1.DeferredsGetRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.DeferredsGetResponse>) responseObserver);
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
              dev.baton.v1.DeferredsCreateRequest,
              dev.baton.v1.DeferredsCreateResponse>(
                service, METHODID_CREATE)))
        .addMethod(
          getAwaitMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.DeferredsAwaitRequest,
              dev.baton.v1.DeferredsAwaitResponse>(
                service, METHODID_AWAIT)))
        .addMethod(
          getCompleteMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.DeferredsCompleteRequest,
              dev.baton.v1.DeferredsCompleteResponse>(
                service, METHODID_COMPLETE)))
        .addMethod(
          getFailMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.DeferredsFailRequest,
              dev.baton.v1.DeferredsFailResponse>(
                service, METHODID_FAIL)))
        .addMethod(
          getGetMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.DeferredsGetRequest,
              dev.baton.v1.DeferredsGetResponse>(
                service, METHODID_GET)))
        .build();
  }

  private static abstract class DeferredsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    DeferredsBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.DeferredsOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("Deferreds");
    }
  }

  private static final class DeferredsFileDescriptorSupplier
      extends DeferredsBaseDescriptorSupplier {
    DeferredsFileDescriptorSupplier() {}
  }

  private static final class DeferredsMethodDescriptorSupplier
      extends DeferredsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    DeferredsMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (DeferredsGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new DeferredsFileDescriptorSupplier())
              .addMethod(getCreateMethod())
              .addMethod(getAwaitMethod())
              .addMethod(getCompleteMethod())
              .addMethod(getFailMethod())
              .addMethod(getGetMethod())
              .build();
        }
      }
    }
    return result;
  }
}
