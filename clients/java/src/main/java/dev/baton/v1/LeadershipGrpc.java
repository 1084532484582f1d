package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Get, List and Watch answer on any pod, whoever leads. In every request an empty `group` means `default`;
 * a group that is not in the configuration is NOT_FOUND.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class LeadershipGrpc {

  private LeadershipGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.Leadership";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.LeadershipGetRequest,
      dev.baton.v1.LeadershipGetResponse> getGetMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Get",
      requestType = dev.baton.v1.LeadershipGetRequest.class,
      responseType = dev.baton.v1.LeadershipGetResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.LeadershipGetRequest,
      dev.baton.v1.LeadershipGetResponse> getGetMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.LeadershipGetRequest, dev.baton.v1.LeadershipGetResponse> getGetMethod;
    if ((getGetMethod = LeadershipGrpc.getGetMethod) == null) {
      synchronized (LeadershipGrpc.class) {
        if ((getGetMethod = LeadershipGrpc.getGetMethod) == null) {
          LeadershipGrpc.getGetMethod = getGetMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.LeadershipGetRequest, dev.baton.v1.LeadershipGetResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Get"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipGetRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipGetResponse.getDefaultInstance()))
              .setSchemaDescriptor(new LeadershipMethodDescriptorSupplier("Get"))
              .build();
        }
      }
    }
    return getGetMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.LeadershipListRequest,
      dev.baton.v1.LeadershipListResponse> getListMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "List",
      requestType = dev.baton.v1.LeadershipListRequest.class,
      responseType = dev.baton.v1.LeadershipListResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.LeadershipListRequest,
      dev.baton.v1.LeadershipListResponse> getListMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.LeadershipListRequest, dev.baton.v1.LeadershipListResponse> getListMethod;
    if ((getListMethod = LeadershipGrpc.getListMethod) == null) {
      synchronized (LeadershipGrpc.class) {
        if ((getListMethod = LeadershipGrpc.getListMethod) == null) {
          LeadershipGrpc.getListMethod = getListMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.LeadershipListRequest, dev.baton.v1.LeadershipListResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "List"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipListRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipListResponse.getDefaultInstance()))
              .setSchemaDescriptor(new LeadershipMethodDescriptorSupplier("List"))
              .build();
        }
      }
    }
    return getListMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.LeadershipResignRequest,
      dev.baton.v1.LeadershipResignResponse> getResignMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Resign",
      requestType = dev.baton.v1.LeadershipResignRequest.class,
      responseType = dev.baton.v1.LeadershipResignResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.LeadershipResignRequest,
      dev.baton.v1.LeadershipResignResponse> getResignMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.LeadershipResignRequest, dev.baton.v1.LeadershipResignResponse> getResignMethod;
    if ((getResignMethod = LeadershipGrpc.getResignMethod) == null) {
      synchronized (LeadershipGrpc.class) {
        if ((getResignMethod = LeadershipGrpc.getResignMethod) == null) {
          LeadershipGrpc.getResignMethod = getResignMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.LeadershipResignRequest, dev.baton.v1.LeadershipResignResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Resign"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipResignRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipResignResponse.getDefaultInstance()))
              .setSchemaDescriptor(new LeadershipMethodDescriptorSupplier("Resign"))
              .build();
        }
      }
    }
    return getResignMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.LeadershipWatchRequest,
      dev.baton.v1.LeadershipWatchResponse> getWatchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Watch",
      requestType = dev.baton.v1.LeadershipWatchRequest.class,
      responseType = dev.baton.v1.LeadershipWatchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.baton.v1.LeadershipWatchRequest,
      dev.baton.v1.LeadershipWatchResponse> getWatchMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.LeadershipWatchRequest, dev.baton.v1.LeadershipWatchResponse> getWatchMethod;
    if ((getWatchMethod = LeadershipGrpc.getWatchMethod) == null) {
      synchronized (LeadershipGrpc.class) {
        if ((getWatchMethod = LeadershipGrpc.getWatchMethod) == null) {
          LeadershipGrpc.getWatchMethod = getWatchMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.LeadershipWatchRequest, dev.baton.v1.LeadershipWatchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Watch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipWatchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.LeadershipWatchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new LeadershipMethodDescriptorSupplier("Watch"))
              .build();
        }
      }
    }
    return getWatchMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static LeadershipStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LeadershipStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LeadershipStub>() {
        @java.lang.Override
        public LeadershipStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LeadershipStub(channel, callOptions);
        }
      };
    return LeadershipStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static LeadershipBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LeadershipBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LeadershipBlockingV2Stub>() {
        @java.lang.Override
        public LeadershipBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LeadershipBlockingV2Stub(channel, callOptions);
        }
      };
    return LeadershipBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static LeadershipBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LeadershipBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LeadershipBlockingStub>() {
        @java.lang.Override
        public LeadershipBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LeadershipBlockingStub(channel, callOptions);
        }
      };
    return LeadershipBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static LeadershipFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<LeadershipFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<LeadershipFutureStub>() {
        @java.lang.Override
        public LeadershipFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new LeadershipFutureStub(channel, callOptions);
        }
      };
    return LeadershipFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Get, List and Watch answer on any pod, whoever leads. In every request an empty `group` means `default`;
   * a group that is not in the configuration is NOT_FOUND.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Who leads a group now.
     * </pre>
     */
    default void get(dev.baton.v1.LeadershipGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipGetResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMethod(), responseObserver);
    }

    /**
     * <pre>
     * Who leads each group, by name.
     * </pre>
     */
    default void list(dev.baton.v1.LeadershipListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipListResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListMethod(), responseObserver);
    }

    /**
     * <pre>
     * Hand the group over, on whichever pod it is led; FAILED_PRECONDITION if nobody leads it. Answers as soon
     * as the hand-over has begun, or the leader has been asked, so that a handler may call it; watch the group
     * to see its end. Runs may finish within the drain time. Asking again is fine.
     * </pre>
     */
    default void resign(dev.baton.v1.LeadershipResignRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipResignResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getResignMethod(), responseObserver);
    }

    /**
     * <pre>
     * The leader of a group: at once, after every change, and on the leading pod after every renewal of the
     * lease (about once a second). The stream ends only with an error; when it breaks, open it again.
     * On the leading pod each message with `is_leader` and the epoch of your term renews your trust: you may
     * act as leader until `trusted_for` after the moment you began to read the message (take the time first,
     * then look inside), and never beyond `trusted_until_boottime`. Only the newest message counts, even
     * where it ends sooner; measure on a clock that goes on while the machine sleeps. Trust is not renewed
     * any more once OnLoseLeadership has been sent. A message with `is_leader` false, or with another
     * epoch, ends your trust at once; a broken stream lets it run out.
     * </pre>
     */
    default void watch(dev.baton.v1.LeadershipWatchRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipWatchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service Leadership.
   * <pre>
   * Get, List and Watch answer on any pod, whoever leads. In every request an empty `group` means `default`;
   * a group that is not in the configuration is NOT_FOUND.
   * </pre>
   */
  public static abstract class LeadershipImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return LeadershipGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service Leadership.
   * <pre>
   * Get, List and Watch answer on any pod, whoever leads. In every request an empty `group` means `default`;
   * a group that is not in the configuration is NOT_FOUND.
   * </pre>
   */
  public static final class LeadershipStub
      extends io.grpc.stub.AbstractAsyncStub<LeadershipStub> {
    private LeadershipStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LeadershipStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LeadershipStub(channel, callOptions);
    }

    /**
     * <pre>
     * Who leads a group now.
     * </pre>
     */
    public void get(dev.baton.v1.LeadershipGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipGetResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Who leads each group, by name.
     * </pre>
     */
    public void list(dev.baton.v1.LeadershipListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipListResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Hand the group over, on whichever pod it is led; FAILED_PRECONDITION if nobody leads it. Answers as soon
     * as the hand-over has begun, or the leader has been asked, so that a handler may call it; watch the group
     * to see its end. Runs may finish within the drain time. Asking again is fine.
     * </pre>
     */
    public void resign(dev.baton.v1.LeadershipResignRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipResignResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getResignMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The leader of a group: at once, after every change, and on the leading pod after every renewal of the
     * lease (about once a second). The stream ends only with an error; when it breaks, open it again.
     * On the leading pod each message with `is_leader` and the epoch of your term renews your trust: you may
     * act as leader until `trusted_for` after the moment you began to read the message (take the time first,
     * then look inside), and never beyond `trusted_until_boottime`. Only the newest message counts, even
     * where it ends sooner; measure on a clock that goes on while the machine sleeps. Trust is not renewed
     * any more once OnLoseLeadership has been sent. A message with `is_leader` false, or with another
     * epoch, ends your trust at once; a broken stream lets it run out.
     * </pre>
     */
    public void watch(dev.baton.v1.LeadershipWatchRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipWatchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service Leadership.
   * <pre>
   * Get, List and Watch answer on any pod, whoever leads. In every request an empty `group` means `default`;
   * a group that is not in the configuration is NOT_FOUND.
   * </pre>
   */
  public static final class LeadershipBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<LeadershipBlockingV2Stub> {
    private LeadershipBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LeadershipBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LeadershipBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Who leads a group now.
     * </pre>
     */
    public dev.baton.v1.LeadershipGetResponse get(dev.baton.v1.LeadershipGetRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Who leads each group, by name.
     * </pre>
     */
    public dev.baton.v1.LeadershipListResponse list(dev.baton.v1.LeadershipListRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Hand the group over, on whichever pod it is led; FAILED_PRECONDITION if nobody leads it. Answers as soon
     * as the hand-over has begun, or the leader has been asked, so that a handler may call it; watch the group
     * to see its end. Runs may finish within the drain time. Asking again is fine.
     * </pre>
     */
    public dev.baton.v1.LeadershipResignResponse resign(dev.baton.v1.LeadershipResignRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getResignMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The leader of a group: at once, after every change, and on the leading pod after every renewal of the
     * lease (about once a second). The stream ends only with an error; when it breaks, open it again.
     * On the leading pod each message with `is_leader` and the epoch of your term renews your trust: you may
     * act as leader until `trusted_for` after the moment you began to read the message (take the time first,
     * then look inside), and never beyond `trusted_until_boottime`. Only the newest message counts, even
     * where it ends sooner; measure on a clock that goes on while the machine sleeps. Trust is not renewed
     * any more once OnLoseLeadership has been sent. A message with `is_leader` false, or with another
     * epoch, ends your trust at once; a broken stream lets it run out.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.baton.v1.LeadershipWatchResponse>
        watch(dev.baton.v1.LeadershipWatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service Leadership.
   * <pre>
   * Get, List and Watch answer on any pod, whoever leads. In every request an empty `group` means `default`;
   * a group that is not in the configuration is NOT_FOUND.
   * </pre>
   */
  public static final class LeadershipBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<LeadershipBlockingStub> {
    private LeadershipBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LeadershipBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LeadershipBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Who leads a group now.
     * </pre>
     */
    public dev.baton.v1.LeadershipGetResponse get(dev.baton.v1.LeadershipGetRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Who leads each group, by name.
     * </pre>
     */
    public dev.baton.v1.LeadershipListResponse list(dev.baton.v1.LeadershipListRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Hand the group over, on whichever pod it is led; FAILED_PRECONDITION if nobody leads it. Answers as soon
     * as the hand-over has begun, or the leader has been asked, so that a handler may call it; watch the group
     * to see its end. Runs may finish within the drain time. Asking again is fine.
     * </pre>
     */
    public dev.baton.v1.LeadershipResignResponse resign(dev.baton.v1.LeadershipResignRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getResignMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The leader of a group: at once, after every change, and on the leading pod after every renewal of the
     * lease (about once a second). The stream ends only with an error; when it breaks, open it again.
     * On the leading pod each message with `is_leader` and the epoch of your term renews your trust: you may
     * act as leader until `trusted_for` after the moment you began to read the message (take the time first,
     * then look inside), and never beyond `trusted_until_boottime`. Only the newest message counts, even
     * where it ends sooner; measure on a clock that goes on while the machine sleeps. Trust is not renewed
     * any more once OnLoseLeadership has been sent. A message with `is_leader` false, or with another
     * epoch, ends your trust at once; a broken stream lets it run out.
     * </pre>
     */
    public java.util.Iterator<dev.baton.v1.LeadershipWatchResponse> watch(
        dev.baton.v1.LeadershipWatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service Leadership.
   * <pre>
   * Get, List and Watch answer on any pod, whoever leads. In every request an empty `group` means `default`;
   * a group that is not in the configuration is NOT_FOUND.
   * </pre>
   */
  public static final class LeadershipFutureStub
      extends io.grpc.stub.AbstractFutureStub<LeadershipFutureStub> {
    private LeadershipFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected LeadershipFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new LeadershipFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Who leads a group now.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.LeadershipGetResponse> get(
        dev.baton.v1.LeadershipGetRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Who leads each group, by name.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.LeadershipListResponse> list(
        dev.baton.v1.LeadershipListRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Hand the group over, on whichever pod it is led; FAILED_PRECONDITION if nobody leads it. Answers as soon
     * as the hand-over has begun, or the leader has been asked, so that a handler may call it; watch the group
     * to see its end. Runs may finish within the drain time. Asking again is fine.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.LeadershipResignResponse> resign(
        dev.baton.v1.LeadershipResignRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getResignMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET = 0;
  private static final int METHODID_LIST = 1;
  private static final int METHODID_RESIGN = 2;
  private static final int METHODID_WATCH = 3;

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
          serviceImpl.get((dev.baton.v1.LeadershipGetRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipGetResponse>) responseObserver);
          break;
        case METHODID_LIST:
          serviceImpl.list((dev.baton.v1.LeadershipListRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipListResponse>) responseObserver);
          break;
        case METHODID_RESIGN:
          serviceImpl.resign((dev.baton.v1.LeadershipResignRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipResignResponse>) responseObserver);
          break;
        case METHODID_WATCH:
          serviceImpl.watch((dev.baton.v1.LeadershipWatchRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.LeadershipWatchResponse>) responseObserver);
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
              dev.baton.v1.LeadershipGetRequest,
              dev.baton.v1.LeadershipGetResponse>(
                service, METHODID_GET)))
        .addMethod(
          getListMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.LeadershipListRequest,
              dev.baton.v1.LeadershipListResponse>(
                service, METHODID_LIST)))
        .addMethod(
          getResignMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.LeadershipResignRequest,
              dev.baton.v1.LeadershipResignResponse>(
                service, METHODID_RESIGN)))
        .addMethod(
          getWatchMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.baton.v1.LeadershipWatchRequest,
              dev.baton.v1.LeadershipWatchResponse>(
                service, METHODID_WATCH)))
        .build();
  }

  private static abstract class LeadershipBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    LeadershipBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.LeadershipOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("Leadership");
    }
  }

  private static final class LeadershipFileDescriptorSupplier
      extends LeadershipBaseDescriptorSupplier {
    LeadershipFileDescriptorSupplier() {}
  }

  private static final class LeadershipMethodDescriptorSupplier
      extends LeadershipBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    LeadershipMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (LeadershipGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new LeadershipFileDescriptorSupplier())
              .addMethod(getGetMethod())
              .addMethod(getListMethod())
              .addMethod(getResignMethod())
              .addMethod(getWatchMethod())
              .build();
        }
      }
    }
    return result;
  }
}
