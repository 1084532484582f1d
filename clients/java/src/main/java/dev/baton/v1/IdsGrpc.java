package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Makes ids and takes them apart; answers on any pod.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class IdsGrpc {

  private IdsGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.Ids";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.IdsGenerateRequest,
      dev.baton.v1.IdsGenerateResponse> getGenerateMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Generate",
      requestType = dev.baton.v1.IdsGenerateRequest.class,
      responseType = dev.baton.v1.IdsGenerateResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.IdsGenerateRequest,
      dev.baton.v1.IdsGenerateResponse> getGenerateMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.IdsGenerateRequest, dev.baton.v1.IdsGenerateResponse> getGenerateMethod;
    if ((getGenerateMethod = IdsGrpc.getGenerateMethod) == null) {
      synchronized (IdsGrpc.class) {
        if ((getGenerateMethod = IdsGrpc.getGenerateMethod) == null) {
          IdsGrpc.getGenerateMethod = getGenerateMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.IdsGenerateRequest, dev.baton.v1.IdsGenerateResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Generate"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.IdsGenerateRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.IdsGenerateResponse.getDefaultInstance()))
              .setSchemaDescriptor(new IdsMethodDescriptorSupplier("Generate"))
              .build();
        }
      }
    }
    return getGenerateMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.IdsDecomposeRequest,
      dev.baton.v1.IdsDecomposeResponse> getDecomposeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Decompose",
      requestType = dev.baton.v1.IdsDecomposeRequest.class,
      responseType = dev.baton.v1.IdsDecomposeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.IdsDecomposeRequest,
      dev.baton.v1.IdsDecomposeResponse> getDecomposeMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.IdsDecomposeRequest, dev.baton.v1.IdsDecomposeResponse> getDecomposeMethod;
    if ((getDecomposeMethod = IdsGrpc.getDecomposeMethod) == null) {
      synchronized (IdsGrpc.class) {
        if ((getDecomposeMethod = IdsGrpc.getDecomposeMethod) == null) {
          IdsGrpc.getDecomposeMethod = getDecomposeMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.IdsDecomposeRequest, dev.baton.v1.IdsDecomposeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Decompose"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.IdsDecomposeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.IdsDecomposeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new IdsMethodDescriptorSupplier("Decompose"))
              .build();
        }
      }
    }
    return getDecomposeMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static IdsStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<IdsStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<IdsStub>() {
        @java.lang.Override
        public IdsStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new IdsStub(channel, callOptions);
        }
      };
    return IdsStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static IdsBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<IdsBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<IdsBlockingV2Stub>() {
        @java.lang.Override
        public IdsBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new IdsBlockingV2Stub(channel, callOptions);
        }
      };
    return IdsBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static IdsBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<IdsBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<IdsBlockingStub>() {
        @java.lang.Override
        public IdsBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new IdsBlockingStub(channel, callOptions);
        }
      };
    return IdsBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static IdsFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<IdsFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<IdsFutureStub>() {
        @java.lang.Override
        public IdsFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new IdsFutureStub(channel, callOptions);
        }
      };
    return IdsFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Makes ids and takes them apart; answers on any pod.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * New ids. UNAVAILABLE while this runner has no machine number, which it needs Postgres for.
     * </pre>
     */
    default void generate(dev.baton.v1.IdsGenerateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.IdsGenerateResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGenerateMethod(), responseObserver);
    }

    /**
     * <pre>
     * What an id was made of. Every number can be taken apart; whether it was ever given out is not checked.
     * </pre>
     */
    default void decompose(dev.baton.v1.IdsDecomposeRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.IdsDecomposeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDecomposeMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service Ids.
   * <pre>
   * Makes ids and takes them apart; answers on any pod.
   * </pre>
   */
  public static abstract class IdsImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return IdsGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service Ids.
   * <pre>
   * Makes ids and takes them apart; answers on any pod.
   * </pre>
   */
  public static final class IdsStub
      extends io.grpc.stub.AbstractAsyncStub<IdsStub> {
    private IdsStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected IdsStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new IdsStub(channel, callOptions);
    }

    /**
     * <pre>
     * New ids. UNAVAILABLE while this runner has no machine number, which it needs Postgres for.
     * </pre>
     */
    public void generate(dev.baton.v1.IdsGenerateRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.IdsGenerateResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGenerateMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * What an id was made of. Every number can be taken apart; whether it was ever given out is not checked.
     * </pre>
     */
    public void decompose(dev.baton.v1.IdsDecomposeRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.IdsDecomposeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDecomposeMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service Ids.
   * <pre>
   * Makes ids and takes them apart; answers on any pod.
   * </pre>
   */
  public static final class IdsBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<IdsBlockingV2Stub> {
    private IdsBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected IdsBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new IdsBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * New ids. UNAVAILABLE while this runner has no machine number, which it needs Postgres for.
     * </pre>
     */
    public dev.baton.v1.IdsGenerateResponse generate(dev.baton.v1.IdsGenerateRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGenerateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * What an id was made of. Every number can be taken apart; whether it was ever given out is not checked.
     * </pre>
     */
    public dev.baton.v1.IdsDecomposeResponse decompose(dev.baton.v1.IdsDecomposeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDecomposeMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service Ids.
   * <pre>
   * Makes ids and takes them apart; answers on any pod.
   * </pre>
   */
  public static final class IdsBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<IdsBlockingStub> {
    private IdsBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected IdsBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new IdsBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * New ids. UNAVAILABLE while this runner has no machine number, which it needs Postgres for.
     * </pre>
     */
    public dev.baton.v1.IdsGenerateResponse generate(dev.baton.v1.IdsGenerateRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGenerateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * What an id was made of. Every number can be taken apart; whether it was ever given out is not checked.
     * </pre>
     */
    public dev.baton.v1.IdsDecomposeResponse decompose(dev.baton.v1.IdsDecomposeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDecomposeMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service Ids.
   * <pre>
   * Makes ids and takes them apart; answers on any pod.
   * </pre>
   */
  public static final class IdsFutureStub
      extends io.grpc.stub.AbstractFutureStub<IdsFutureStub> {
    private IdsFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected IdsFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new IdsFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * New ids. UNAVAILABLE while this runner has no machine number, which it needs Postgres for.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.IdsGenerateResponse> generate(
        dev.baton.v1.IdsGenerateRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGenerateMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * What an id was made of. Every number can be taken apart; whether it was ever given out is not checked.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.IdsDecomposeResponse> decompose(
        dev.baton.v1.IdsDecomposeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDecomposeMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GENERATE = 0;
  private static final int METHODID_DECOMPOSE = 1;

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
        case METHODID_GENERATE:
          serviceImpl.generate((dev.baton.v1.IdsGenerateRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.IdsGenerateResponse>) responseObserver);
          break;
        case METHODID_DECOMPOSE:
          serviceImpl.decompose((dev.baton.v1.IdsDecomposeRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.IdsDecomposeResponse>) responseObserver);
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
          getGenerateMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.IdsGenerateRequest,
              dev.baton.v1.IdsGenerateResponse>(
                service, METHODID_GENERATE)))
        .addMethod(
          getDecomposeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.IdsDecomposeRequest,
              dev.baton.v1.IdsDecomposeResponse>(
                service, METHODID_DECOMPOSE)))
        .build();
  }

  private static abstract class IdsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    IdsBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.IdsOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("Ids");
    }
  }

  private static final class IdsFileDescriptorSupplier
      extends IdsBaseDescriptorSupplier {
    IdsFileDescriptorSupplier() {}
  }

  private static final class IdsMethodDescriptorSupplier
      extends IdsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    IdsMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (IdsGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new IdsFileDescriptorSupplier())
              .addMethod(getGenerateMethod())
              .addMethod(getDecomposeMethod())
              .build();
        }
      }
    }
    return result;
  }
}
