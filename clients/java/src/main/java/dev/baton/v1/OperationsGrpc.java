package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Speaks to the answering sidecar alone, not to the cluster.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class OperationsGrpc {

  private OperationsGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.Operations";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.OperationsDrainRequest,
      dev.baton.v1.OperationsDrainResponse> getDrainMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Drain",
      requestType = dev.baton.v1.OperationsDrainRequest.class,
      responseType = dev.baton.v1.OperationsDrainResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.OperationsDrainRequest,
      dev.baton.v1.OperationsDrainResponse> getDrainMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.OperationsDrainRequest, dev.baton.v1.OperationsDrainResponse> getDrainMethod;
    if ((getDrainMethod = OperationsGrpc.getDrainMethod) == null) {
      synchronized (OperationsGrpc.class) {
        if ((getDrainMethod = OperationsGrpc.getDrainMethod) == null) {
          OperationsGrpc.getDrainMethod = getDrainMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.OperationsDrainRequest, dev.baton.v1.OperationsDrainResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Drain"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.OperationsDrainRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.OperationsDrainResponse.getDefaultInstance()))
              .setSchemaDescriptor(new OperationsMethodDescriptorSupplier("Drain"))
              .build();
        }
      }
    }
    return getDrainMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static OperationsStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<OperationsStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<OperationsStub>() {
        @java.lang.Override
        public OperationsStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new OperationsStub(channel, callOptions);
        }
      };
    return OperationsStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static OperationsBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<OperationsBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<OperationsBlockingV2Stub>() {
        @java.lang.Override
        public OperationsBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new OperationsBlockingV2Stub(channel, callOptions);
        }
      };
    return OperationsBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static OperationsBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<OperationsBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<OperationsBlockingStub>() {
        @java.lang.Override
        public OperationsBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new OperationsBlockingStub(channel, callOptions);
        }
      };
    return OperationsBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static OperationsFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<OperationsFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<OperationsFutureStub>() {
        @java.lang.Override
        public OperationsFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new OperationsFutureStub(channel, callOptions);
        }
      };
    return OperationsFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Speaks to the answering sidecar alone, not to the cluster.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Not ready, hand every group over, compete no more: what a preStop hook asks for. It cannot be undone;
     * the process goes on serving until it is ended. Asking again is fine.
     * </pre>
     */
    default void drain(dev.baton.v1.OperationsDrainRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.OperationsDrainResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDrainMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service Operations.
   * <pre>
   * Speaks to the answering sidecar alone, not to the cluster.
   * </pre>
   */
  public static abstract class OperationsImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return OperationsGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service Operations.
   * <pre>
   * Speaks to the answering sidecar alone, not to the cluster.
   * </pre>
   */
  public static final class OperationsStub
      extends io.grpc.stub.AbstractAsyncStub<OperationsStub> {
    private OperationsStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected OperationsStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new OperationsStub(channel, callOptions);
    }

    /**
     * <pre>
     * Not ready, hand every group over, compete no more: what a preStop hook asks for. It cannot be undone;
     * the process goes on serving until it is ended. Asking again is fine.
     * </pre>
     */
    public void drain(dev.baton.v1.OperationsDrainRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.OperationsDrainResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDrainMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service Operations.
   * <pre>
   * Speaks to the answering sidecar alone, not to the cluster.
   * </pre>
   */
  public static final class OperationsBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<OperationsBlockingV2Stub> {
    private OperationsBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected OperationsBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new OperationsBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Not ready, hand every group over, compete no more: what a preStop hook asks for. It cannot be undone;
     * the process goes on serving until it is ended. Asking again is fine.
     * </pre>
     */
    public dev.baton.v1.OperationsDrainResponse drain(dev.baton.v1.OperationsDrainRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDrainMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service Operations.
   * <pre>
   * Speaks to the answering sidecar alone, not to the cluster.
   * </pre>
   */
  public static final class OperationsBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<OperationsBlockingStub> {
    private OperationsBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected OperationsBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new OperationsBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Not ready, hand every group over, compete no more: what a preStop hook asks for. It cannot be undone;
     * the process goes on serving until it is ended. Asking again is fine.
     * </pre>
     */
    public dev.baton.v1.OperationsDrainResponse drain(dev.baton.v1.OperationsDrainRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDrainMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service Operations.
   * <pre>
   * Speaks to the answering sidecar alone, not to the cluster.
   * </pre>
   */
  public static final class OperationsFutureStub
      extends io.grpc.stub.AbstractFutureStub<OperationsFutureStub> {
    private OperationsFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected OperationsFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new OperationsFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Not ready, hand every group over, compete no more: what a preStop hook asks for. It cannot be undone;
     * the process goes on serving until it is ended. Asking again is fine.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.OperationsDrainResponse> drain(
        dev.baton.v1.OperationsDrainRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDrainMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_DRAIN = 0;

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
        case METHODID_DRAIN:
          serviceImpl.drain((dev.baton.v1.OperationsDrainRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.OperationsDrainResponse>) responseObserver);
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
          getDrainMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.OperationsDrainRequest,
              dev.baton.v1.OperationsDrainResponse>(
                service, METHODID_DRAIN)))
        .build();
  }

  private static abstract class OperationsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    OperationsBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.OperationsOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("Operations");
    }
  }

  private static final class OperationsFileDescriptorSupplier
      extends OperationsBaseDescriptorSupplier {
    OperationsFileDescriptorSupplier() {}
  }

  private static final class OperationsMethodDescriptorSupplier
      extends OperationsBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    OperationsMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (OperationsGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new OperationsFileDescriptorSupplier())
              .addMethod(getDrainMethod())
              .build();
        }
      }
    }
    return result;
  }
}
