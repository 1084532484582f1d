package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Reads singletons; answers on any pod.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class SingletonsGrpc {

  private SingletonsGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.Singletons";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SingletonsGetRequest,
      dev.baton.v1.SingletonsGetResponse> getGetMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Get",
      requestType = dev.baton.v1.SingletonsGetRequest.class,
      responseType = dev.baton.v1.SingletonsGetResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SingletonsGetRequest,
      dev.baton.v1.SingletonsGetResponse> getGetMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SingletonsGetRequest, dev.baton.v1.SingletonsGetResponse> getGetMethod;
    if ((getGetMethod = SingletonsGrpc.getGetMethod) == null) {
      synchronized (SingletonsGrpc.class) {
        if ((getGetMethod = SingletonsGrpc.getGetMethod) == null) {
          SingletonsGrpc.getGetMethod = getGetMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SingletonsGetRequest, dev.baton.v1.SingletonsGetResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Get"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SingletonsGetRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SingletonsGetResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SingletonsMethodDescriptorSupplier("Get"))
              .build();
        }
      }
    }
    return getGetMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.SingletonsListRequest,
      dev.baton.v1.SingletonsListResponse> getListMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "List",
      requestType = dev.baton.v1.SingletonsListRequest.class,
      responseType = dev.baton.v1.SingletonsListResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.SingletonsListRequest,
      dev.baton.v1.SingletonsListResponse> getListMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.SingletonsListRequest, dev.baton.v1.SingletonsListResponse> getListMethod;
    if ((getListMethod = SingletonsGrpc.getListMethod) == null) {
      synchronized (SingletonsGrpc.class) {
        if ((getListMethod = SingletonsGrpc.getListMethod) == null) {
          SingletonsGrpc.getListMethod = getListMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.SingletonsListRequest, dev.baton.v1.SingletonsListResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "List"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SingletonsListRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.SingletonsListResponse.getDefaultInstance()))
              .setSchemaDescriptor(new SingletonsMethodDescriptorSupplier("List"))
              .build();
        }
      }
    }
    return getListMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static SingletonsStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SingletonsStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SingletonsStub>() {
        @java.lang.Override
        public SingletonsStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SingletonsStub(channel, callOptions);
        }
      };
    return SingletonsStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static SingletonsBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SingletonsBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SingletonsBlockingV2Stub>() {
        @java.lang.Override
        public SingletonsBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SingletonsBlockingV2Stub(channel, callOptions);
        }
      };
    return SingletonsBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static SingletonsBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SingletonsBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SingletonsBlockingStub>() {
        @java.lang.Override
        public SingletonsBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SingletonsBlockingStub(channel, callOptions);
        }
      };
    return SingletonsBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static SingletonsFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<SingletonsFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<SingletonsFutureStub>() {
        @java.lang.Override
        public SingletonsFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new SingletonsFutureStub(channel, callOptions);
        }
      };
    return SingletonsFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Reads singletons; answers on any pod.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * One singleton; NOT_FOUND if the configuration does not name it.
     * </pre>
     */
    default void get(dev.baton.v1.SingletonsGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SingletonsGetResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMethod(), responseObserver);
    }

    /**
     * <pre>
     * All singletons, by name.
     * </pre>
     */
    default void list(dev.baton.v1.SingletonsListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SingletonsListResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service Singletons.
   * <pre>
   * Reads singletons; answers on any pod.
   * </pre>
   */
  public static abstract class SingletonsImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return SingletonsGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service Singletons.
   * <pre>
   * Reads singletons; answers on any pod.
   * </pre>
   */
  public static final class SingletonsStub
      extends io.grpc.stub.AbstractAsyncStub<SingletonsStub> {
    private SingletonsStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SingletonsStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SingletonsStub(channel, callOptions);
    }

    /**
     * <pre>
     * One singleton; NOT_FOUND if the configuration does not name it.
     * </pre>
     */
    public void get(dev.baton.v1.SingletonsGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SingletonsGetResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * All singletons, by name.
     * </pre>
     */
    public void list(dev.baton.v1.SingletonsListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.SingletonsListResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service Singletons.
   * <pre>
   * Reads singletons; answers on any pod.
   * </pre>
   */
  public static final class SingletonsBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<SingletonsBlockingV2Stub> {
    private SingletonsBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SingletonsBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SingletonsBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * One singleton; NOT_FOUND if the configuration does not name it.
     * </pre>
     */
    public dev.baton.v1.SingletonsGetResponse get(dev.baton.v1.SingletonsGetRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * All singletons, by name.
     * </pre>
     */
    public dev.baton.v1.SingletonsListResponse list(dev.baton.v1.SingletonsListRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service Singletons.
   * <pre>
   * Reads singletons; answers on any pod.
   * </pre>
   */
  public static final class SingletonsBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<SingletonsBlockingStub> {
    private SingletonsBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SingletonsBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SingletonsBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * One singleton; NOT_FOUND if the configuration does not name it.
     * </pre>
     */
    public dev.baton.v1.SingletonsGetResponse get(dev.baton.v1.SingletonsGetRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * All singletons, by name.
     * </pre>
     */
    public dev.baton.v1.SingletonsListResponse list(dev.baton.v1.SingletonsListRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service Singletons.
   * <pre>
   * Reads singletons; answers on any pod.
   * </pre>
   */
  public static final class SingletonsFutureStub
      extends io.grpc.stub.AbstractFutureStub<SingletonsFutureStub> {
    private SingletonsFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected SingletonsFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new SingletonsFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * One singleton; NOT_FOUND if the configuration does not name it.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SingletonsGetResponse> get(
        dev.baton.v1.SingletonsGetRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * All singletons, by name.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.SingletonsListResponse> list(
        dev.baton.v1.SingletonsListRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET = 0;
  private static final int METHODID_LIST = 1;

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
          serviceImpl.get((dev.baton.v1.SingletonsGetRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SingletonsGetResponse>) responseObserver);
          break;
        case METHODID_LIST:
          serviceImpl.list((dev.baton.v1.SingletonsListRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.SingletonsListResponse>) responseObserver);
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
              dev.baton.v1.SingletonsGetRequest,
              dev.baton.v1.SingletonsGetResponse>(
                service, METHODID_GET)))
        .addMethod(
          getListMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.SingletonsListRequest,
              dev.baton.v1.SingletonsListResponse>(
                service, METHODID_LIST)))
        .build();
  }

  private static abstract class SingletonsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    SingletonsBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.SingletonsOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("Singletons");
    }
  }

  private static final class SingletonsFileDescriptorSupplier
      extends SingletonsBaseDescriptorSupplier {
    SingletonsFileDescriptorSupplier() {}
  }

  private static final class SingletonsMethodDescriptorSupplier
      extends SingletonsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    SingletonsMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (SingletonsGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new SingletonsFileDescriptorSupplier())
              .addMethod(getGetMethod())
              .addMethod(getListMethod())
              .build();
        }
      }
    }
    return result;
  }
}
