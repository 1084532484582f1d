package dev.baton.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Reads and writes state; answers on any pod.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class StateGrpc {

  private StateGrpc() {}

  public static final java.lang.String SERVICE_NAME = "baton.v1.State";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StateGetRequest,
      dev.baton.v1.StateGetResponse> getGetMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Get",
      requestType = dev.baton.v1.StateGetRequest.class,
      responseType = dev.baton.v1.StateGetResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StateGetRequest,
      dev.baton.v1.StateGetResponse> getGetMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StateGetRequest, dev.baton.v1.StateGetResponse> getGetMethod;
    if ((getGetMethod = StateGrpc.getGetMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getGetMethod = StateGrpc.getGetMethod) == null) {
          StateGrpc.getGetMethod = getGetMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StateGetRequest, dev.baton.v1.StateGetResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Get"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateGetRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateGetResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("Get"))
              .build();
        }
      }
    }
    return getGetMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StatePutRequest,
      dev.baton.v1.StatePutResponse> getPutMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Put",
      requestType = dev.baton.v1.StatePutRequest.class,
      responseType = dev.baton.v1.StatePutResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StatePutRequest,
      dev.baton.v1.StatePutResponse> getPutMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StatePutRequest, dev.baton.v1.StatePutResponse> getPutMethod;
    if ((getPutMethod = StateGrpc.getPutMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getPutMethod = StateGrpc.getPutMethod) == null) {
          StateGrpc.getPutMethod = getPutMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StatePutRequest, dev.baton.v1.StatePutResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Put"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StatePutRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StatePutResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("Put"))
              .build();
        }
      }
    }
    return getPutMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StateDeleteRequest,
      dev.baton.v1.StateDeleteResponse> getDeleteMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Delete",
      requestType = dev.baton.v1.StateDeleteRequest.class,
      responseType = dev.baton.v1.StateDeleteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StateDeleteRequest,
      dev.baton.v1.StateDeleteResponse> getDeleteMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StateDeleteRequest, dev.baton.v1.StateDeleteResponse> getDeleteMethod;
    if ((getDeleteMethod = StateGrpc.getDeleteMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getDeleteMethod = StateGrpc.getDeleteMethod) == null) {
          StateGrpc.getDeleteMethod = getDeleteMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StateDeleteRequest, dev.baton.v1.StateDeleteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Delete"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateDeleteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateDeleteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("Delete"))
              .build();
        }
      }
    }
    return getDeleteMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StateHasRequest,
      dev.baton.v1.StateHasResponse> getHasMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Has",
      requestType = dev.baton.v1.StateHasRequest.class,
      responseType = dev.baton.v1.StateHasResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StateHasRequest,
      dev.baton.v1.StateHasResponse> getHasMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StateHasRequest, dev.baton.v1.StateHasResponse> getHasMethod;
    if ((getHasMethod = StateGrpc.getHasMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getHasMethod = StateGrpc.getHasMethod) == null) {
          StateGrpc.getHasMethod = getHasMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StateHasRequest, dev.baton.v1.StateHasResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Has"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateHasRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateHasResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("Has"))
              .build();
        }
      }
    }
    return getHasMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StateListRequest,
      dev.baton.v1.StateListResponse> getListMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "List",
      requestType = dev.baton.v1.StateListRequest.class,
      responseType = dev.baton.v1.StateListResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StateListRequest,
      dev.baton.v1.StateListResponse> getListMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StateListRequest, dev.baton.v1.StateListResponse> getListMethod;
    if ((getListMethod = StateGrpc.getListMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getListMethod = StateGrpc.getListMethod) == null) {
          StateGrpc.getListMethod = getListMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StateListRequest, dev.baton.v1.StateListResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "List"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateListRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateListResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("List"))
              .build();
        }
      }
    }
    return getListMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StateSizeRequest,
      dev.baton.v1.StateSizeResponse> getSizeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Size",
      requestType = dev.baton.v1.StateSizeRequest.class,
      responseType = dev.baton.v1.StateSizeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StateSizeRequest,
      dev.baton.v1.StateSizeResponse> getSizeMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StateSizeRequest, dev.baton.v1.StateSizeResponse> getSizeMethod;
    if ((getSizeMethod = StateGrpc.getSizeMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getSizeMethod = StateGrpc.getSizeMethod) == null) {
          StateGrpc.getSizeMethod = getSizeMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StateSizeRequest, dev.baton.v1.StateSizeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Size"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateSizeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateSizeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("Size"))
              .build();
        }
      }
    }
    return getSizeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StateClearRequest,
      dev.baton.v1.StateClearResponse> getClearMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Clear",
      requestType = dev.baton.v1.StateClearRequest.class,
      responseType = dev.baton.v1.StateClearResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StateClearRequest,
      dev.baton.v1.StateClearResponse> getClearMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StateClearRequest, dev.baton.v1.StateClearResponse> getClearMethod;
    if ((getClearMethod = StateGrpc.getClearMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getClearMethod = StateGrpc.getClearMethod) == null) {
          StateGrpc.getClearMethod = getClearMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StateClearRequest, dev.baton.v1.StateClearResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Clear"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateClearRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateClearResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("Clear"))
              .build();
        }
      }
    }
    return getClearMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.baton.v1.StateWatchRequest,
      dev.baton.v1.StateWatchResponse> getWatchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Watch",
      requestType = dev.baton.v1.StateWatchRequest.class,
      responseType = dev.baton.v1.StateWatchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.baton.v1.StateWatchRequest,
      dev.baton.v1.StateWatchResponse> getWatchMethod() {
    io.grpc.MethodDescriptor<dev.baton.v1.StateWatchRequest, dev.baton.v1.StateWatchResponse> getWatchMethod;
    if ((getWatchMethod = StateGrpc.getWatchMethod) == null) {
      synchronized (StateGrpc.class) {
        if ((getWatchMethod = StateGrpc.getWatchMethod) == null) {
          StateGrpc.getWatchMethod = getWatchMethod =
              io.grpc.MethodDescriptor.<dev.baton.v1.StateWatchRequest, dev.baton.v1.StateWatchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Watch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateWatchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.baton.v1.StateWatchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new StateMethodDescriptorSupplier("Watch"))
              .build();
        }
      }
    }
    return getWatchMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static StateStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<StateStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<StateStub>() {
        @java.lang.Override
        public StateStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new StateStub(channel, callOptions);
        }
      };
    return StateStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static StateBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<StateBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<StateBlockingV2Stub>() {
        @java.lang.Override
        public StateBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new StateBlockingV2Stub(channel, callOptions);
        }
      };
    return StateBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static StateBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<StateBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<StateBlockingStub>() {
        @java.lang.Override
        public StateBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new StateBlockingStub(channel, callOptions);
        }
      };
    return StateBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static StateFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<StateFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<StateFutureStub>() {
        @java.lang.Override
        public StateFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new StateFutureStub(channel, callOptions);
        }
      };
    return StateFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Reads and writes state; answers on any pod.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * One entry. NOT_FOUND if there is none, or if it has expired.
     * </pre>
     */
    default void get(dev.baton.v1.StateGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateGetResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMethod(), responseObserver);
    }

    /**
     * <pre>
     * Writes one entry. With `expected_version` it is a compare-and-set: ABORTED, and nothing is changed,
     * if the entry has another version; read again and decide anew.
     * </pre>
     */
    default void put(dev.baton.v1.StatePutRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StatePutResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPutMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes one entry. That there is none is not an error, unless `expected_version` is given: ABORTED.
     * </pre>
     */
    default void delete(dev.baton.v1.StateDeleteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateDeleteResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteMethod(), responseObserver);
    }

    /**
     * <pre>
     * Whether there is an entry. Always strong.
     * </pre>
     */
    default void has(dev.baton.v1.StateHasRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateHasResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getHasMethod(), responseObserver);
    }

    /**
     * <pre>
     * The entries whose keys begin with a prefix, by key in byte order. Always strong; each page is consistent
     * in itself. A page also ends before its message would exceed 4 MiB.
     * </pre>
     */
    default void list(dev.baton.v1.StateListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateListResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListMethod(), responseObserver);
    }

    /**
     * <pre>
     * How many entries there are whose keys begin with a prefix. Always strong.
     * </pre>
     */
    default void size(dev.baton.v1.StateSizeRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateSizeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSizeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes all entries whose keys begin with a prefix, except owned keys.
     * </pre>
     */
    default void clear(dev.baton.v1.StateClearRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateClearResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getClearMethod(), responseObserver);
    }

    /**
     * <pre>
     * The changes of all entries whose keys begin with a prefix, deletions and expiries included. For each key
     * they come in the order of their versions; several quick changes of one key may be told as the last
     * one; a change may be told twice, so ignore a version not above the one you hold for that key. The
     * headers are sent once the watch is in place. To keep a full copy: Watch after version 0, which begins
     * with what is there. Or open Watch without `after_version` first, wait for its headers, then List,
     * and ignore versions not above the one you hold. (Watch after the highest version seen in a List of
     * several pages could miss a change: each page is of another moment.) After a broken stream Watch
     * again after the highest version it told.
     * OUT_OF_RANGE (reason HistoryGone) if `after_version` lies before what is still known of deletions, a
     * week: begin again.
     * </pre>
     */
    default void watch(dev.baton.v1.StateWatchRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateWatchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service State.
   * <pre>
   * Reads and writes state; answers on any pod.
   * </pre>
   */
  public static abstract class StateImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return StateGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service State.
   * <pre>
   * Reads and writes state; answers on any pod.
   * </pre>
   */
  public static final class StateStub
      extends io.grpc.stub.AbstractAsyncStub<StateStub> {
    private StateStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected StateStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new StateStub(channel, callOptions);
    }

    /**
     * <pre>
     * One entry. NOT_FOUND if there is none, or if it has expired.
     * </pre>
     */
    public void get(dev.baton.v1.StateGetRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateGetResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Writes one entry. With `expected_version` it is a compare-and-set: ABORTED, and nothing is changed,
     * if the entry has another version; read again and decide anew.
     * </pre>
     */
    public void put(dev.baton.v1.StatePutRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StatePutResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPutMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes one entry. That there is none is not an error, unless `expected_version` is given: ABORTED.
     * </pre>
     */
    public void delete(dev.baton.v1.StateDeleteRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateDeleteResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Whether there is an entry. Always strong.
     * </pre>
     */
    public void has(dev.baton.v1.StateHasRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateHasResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getHasMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The entries whose keys begin with a prefix, by key in byte order. Always strong; each page is consistent
     * in itself. A page also ends before its message would exceed 4 MiB.
     * </pre>
     */
    public void list(dev.baton.v1.StateListRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateListResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * How many entries there are whose keys begin with a prefix. Always strong.
     * </pre>
     */
    public void size(dev.baton.v1.StateSizeRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateSizeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSizeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes all entries whose keys begin with a prefix, except owned keys.
     * </pre>
     */
    public void clear(dev.baton.v1.StateClearRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateClearResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getClearMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The changes of all entries whose keys begin with a prefix, deletions and expiries included. For each key
     * they come in the order of their versions; several quick changes of one key may be told as the last
     * one; a change may be told twice, so ignore a version not above the one you hold for that key. The
     * headers are sent once the watch is in place. To keep a full copy: Watch after version 0, which begins
     * with what is there. Or open Watch without `after_version` first, wait for its headers, then List,
     * and ignore versions not above the one you hold. (Watch after the highest version seen in a List of
     * several pages could miss a change: each page is of another moment.) After a broken stream Watch
     * again after the highest version it told.
     * OUT_OF_RANGE (reason HistoryGone) if `after_version` lies before what is still known of deletions, a
     * week: begin again.
     * </pre>
     */
    public void watch(dev.baton.v1.StateWatchRequest request,
        io.grpc.stub.StreamObserver<dev.baton.v1.StateWatchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service State.
   * <pre>
   * Reads and writes state; answers on any pod.
   * </pre>
   */
  public static final class StateBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<StateBlockingV2Stub> {
    private StateBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected StateBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new StateBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * One entry. NOT_FOUND if there is none, or if it has expired.
     * </pre>
     */
    public dev.baton.v1.StateGetResponse get(dev.baton.v1.StateGetRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Writes one entry. With `expected_version` it is a compare-and-set: ABORTED, and nothing is changed,
     * if the entry has another version; read again and decide anew.
     * </pre>
     */
    public dev.baton.v1.StatePutResponse put(dev.baton.v1.StatePutRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPutMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes one entry. That there is none is not an error, unless `expected_version` is given: ABORTED.
     * </pre>
     */
    public dev.baton.v1.StateDeleteResponse delete(dev.baton.v1.StateDeleteRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Whether there is an entry. Always strong.
     * </pre>
     */
    public dev.baton.v1.StateHasResponse has(dev.baton.v1.StateHasRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getHasMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The entries whose keys begin with a prefix, by key in byte order. Always strong; each page is consistent
     * in itself. A page also ends before its message would exceed 4 MiB.
     * </pre>
     */
    public dev.baton.v1.StateListResponse list(dev.baton.v1.StateListRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * How many entries there are whose keys begin with a prefix. Always strong.
     * </pre>
     */
    public dev.baton.v1.StateSizeResponse size(dev.baton.v1.StateSizeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSizeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes all entries whose keys begin with a prefix, except owned keys.
     * </pre>
     */
    public dev.baton.v1.StateClearResponse clear(dev.baton.v1.StateClearRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getClearMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The changes of all entries whose keys begin with a prefix, deletions and expiries included. For each key
     * they come in the order of their versions; several quick changes of one key may be told as the last
     * one; a change may be told twice, so ignore a version not above the one you hold for that key. The
     * headers are sent once the watch is in place. To keep a full copy: Watch after version 0, which begins
     * with what is there. Or open Watch without `after_version` first, wait for its headers, then List,
     * and ignore versions not above the one you hold. (Watch after the highest version seen in a List of
     * several pages could miss a change: each page is of another moment.) After a broken stream Watch
     * again after the highest version it told.
     * OUT_OF_RANGE (reason HistoryGone) if `after_version` lies before what is still known of deletions, a
     * week: begin again.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.baton.v1.StateWatchResponse>
        watch(dev.baton.v1.StateWatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service State.
   * <pre>
   * Reads and writes state; answers on any pod.
   * </pre>
   */
  public static final class StateBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<StateBlockingStub> {
    private StateBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected StateBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new StateBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * One entry. NOT_FOUND if there is none, or if it has expired.
     * </pre>
     */
    public dev.baton.v1.StateGetResponse get(dev.baton.v1.StateGetRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Writes one entry. With `expected_version` it is a compare-and-set: ABORTED, and nothing is changed,
     * if the entry has another version; read again and decide anew.
     * </pre>
     */
    public dev.baton.v1.StatePutResponse put(dev.baton.v1.StatePutRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPutMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes one entry. That there is none is not an error, unless `expected_version` is given: ABORTED.
     * </pre>
     */
    public dev.baton.v1.StateDeleteResponse delete(dev.baton.v1.StateDeleteRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Whether there is an entry. Always strong.
     * </pre>
     */
    public dev.baton.v1.StateHasResponse has(dev.baton.v1.StateHasRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getHasMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The entries whose keys begin with a prefix, by key in byte order. Always strong; each page is consistent
     * in itself. A page also ends before its message would exceed 4 MiB.
     * </pre>
     */
    public dev.baton.v1.StateListResponse list(dev.baton.v1.StateListRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * How many entries there are whose keys begin with a prefix. Always strong.
     * </pre>
     */
    public dev.baton.v1.StateSizeResponse size(dev.baton.v1.StateSizeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSizeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes all entries whose keys begin with a prefix, except owned keys.
     * </pre>
     */
    public dev.baton.v1.StateClearResponse clear(dev.baton.v1.StateClearRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getClearMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The changes of all entries whose keys begin with a prefix, deletions and expiries included. For each key
     * they come in the order of their versions; several quick changes of one key may be told as the last
     * one; a change may be told twice, so ignore a version not above the one you hold for that key. The
     * headers are sent once the watch is in place. To keep a full copy: Watch after version 0, which begins
     * with what is there. Or open Watch without `after_version` first, wait for its headers, then List,
     * and ignore versions not above the one you hold. (Watch after the highest version seen in a List of
     * several pages could miss a change: each page is of another moment.) After a broken stream Watch
     * again after the highest version it told.
     * OUT_OF_RANGE (reason HistoryGone) if `after_version` lies before what is still known of deletions, a
     * week: begin again.
     * </pre>
     */
    public java.util.Iterator<dev.baton.v1.StateWatchResponse> watch(
        dev.baton.v1.StateWatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service State.
   * <pre>
   * Reads and writes state; answers on any pod.
   * </pre>
   */
  public static final class StateFutureStub
      extends io.grpc.stub.AbstractFutureStub<StateFutureStub> {
    private StateFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected StateFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new StateFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * One entry. NOT_FOUND if there is none, or if it has expired.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.StateGetResponse> get(
        dev.baton.v1.StateGetRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Writes one entry. With `expected_version` it is a compare-and-set: ABORTED, and nothing is changed,
     * if the entry has another version; read again and decide anew.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.StatePutResponse> put(
        dev.baton.v1.StatePutRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPutMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes one entry. That there is none is not an error, unless `expected_version` is given: ABORTED.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.StateDeleteResponse> delete(
        dev.baton.v1.StateDeleteRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Whether there is an entry. Always strong.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.StateHasResponse> has(
        dev.baton.v1.StateHasRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getHasMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The entries whose keys begin with a prefix, by key in byte order. Always strong; each page is consistent
     * in itself. A page also ends before its message would exceed 4 MiB.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.StateListResponse> list(
        dev.baton.v1.StateListRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * How many entries there are whose keys begin with a prefix. Always strong.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.StateSizeResponse> size(
        dev.baton.v1.StateSizeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSizeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes all entries whose keys begin with a prefix, except owned keys.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.baton.v1.StateClearResponse> clear(
        dev.baton.v1.StateClearRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getClearMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET = 0;
  private static final int METHODID_PUT = 1;
  private static final int METHODID_DELETE = 2;
  private static final int METHODID_HAS = 3;
  private static final int METHODID_LIST = 4;
  private static final int METHODID_SIZE = 5;
  private static final int METHODID_CLEAR = 6;
  private static final int METHODID_WATCH = 7;

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
          serviceImpl.get((dev.baton.v1.StateGetRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StateGetResponse>) responseObserver);
          break;
        case METHODID_PUT:
          serviceImpl.put((dev.baton.v1.StatePutRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StatePutResponse>) responseObserver);
          break;
        case METHODID_DELETE:
          serviceImpl.delete((dev.baton.v1.StateDeleteRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StateDeleteResponse>) responseObserver);
          break;
        case METHODID_HAS:
          serviceImpl.has((dev.baton.v1.StateHasRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StateHasResponse>) responseObserver);
          break;
        case METHODID_LIST:
          serviceImpl.list((dev.baton.v1.StateListRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StateListResponse>) responseObserver);
          break;
        case METHODID_SIZE:
          serviceImpl.size((dev.baton.v1.StateSizeRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StateSizeResponse>) responseObserver);
          break;
        case METHODID_CLEAR:
          serviceImpl.clear((dev.baton.v1.StateClearRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StateClearResponse>) responseObserver);
          break;
        case METHODID_WATCH:
          serviceImpl.watch((dev.baton.v1.StateWatchRequest) request,
              (io.grpc.stub.StreamObserver<dev.baton.v1.StateWatchResponse>) responseObserver);
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
              dev.baton.v1.StateGetRequest,
              dev.baton.v1.StateGetResponse>(
                service, METHODID_GET)))
        .addMethod(
          getPutMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.StatePutRequest,
              dev.baton.v1.StatePutResponse>(
                service, METHODID_PUT)))
        .addMethod(
          getDeleteMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.StateDeleteRequest,
              dev.baton.v1.StateDeleteResponse>(
                service, METHODID_DELETE)))
        .addMethod(
          getHasMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.StateHasRequest,
              dev.baton.v1.StateHasResponse>(
                service, METHODID_HAS)))
        .addMethod(
          getListMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.StateListRequest,
              dev.baton.v1.StateListResponse>(
                service, METHODID_LIST)))
        .addMethod(
          getSizeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.StateSizeRequest,
              dev.baton.v1.StateSizeResponse>(
                service, METHODID_SIZE)))
        .addMethod(
          getClearMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.baton.v1.StateClearRequest,
              dev.baton.v1.StateClearResponse>(
                service, METHODID_CLEAR)))
        .addMethod(
          getWatchMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.baton.v1.StateWatchRequest,
              dev.baton.v1.StateWatchResponse>(
                service, METHODID_WATCH)))
        .build();
  }

  private static abstract class StateBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    StateBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.baton.v1.StateOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("State");
    }
  }

  private static final class StateFileDescriptorSupplier
      extends StateBaseDescriptorSupplier {
    StateFileDescriptorSupplier() {}
  }

  private static final class StateMethodDescriptorSupplier
      extends StateBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    StateMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (StateGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new StateFileDescriptorSupplier())
              .addMethod(getGetMethod())
              .addMethod(getPutMethod())
              .addMethod(getDeleteMethod())
              .addMethod(getHasMethod())
              .addMethod(getListMethod())
              .addMethod(getSizeMethod())
              .addMethod(getClearMethod())
              .addMethod(getWatchMethod())
              .build();
        }
      }
    }
    return result;
  }
}
