package dev.baton;

import com.google.protobuf.Message;
import dev.baton.v1.AppStreamGrpc;
import dev.baton.v1.AttachResponse;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongFunction;

/**
 * The way to the sidecar: one channel, its token, deadlines and repeated questions.
 *
 * <p>Every call has a deadline. A call that is safe to repeat is repeated while the sidecar is
 * UNAVAILABLE, with back-off, for as long as its time allows; every failure comes out as a {@link
 * BatonException}. Streams are not repeated here: only their reader knows where to go on.
 */
final class Connection {
  static final Metadata.Key<String> TOKEN =
      Metadata.Key.of("baton-token", Metadata.ASCII_STRING_MARSHALLER);
  static final Metadata.Key<String> TRACEPARENT =
      Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);
  static final Duration CALL_TIME = Duration.ofSeconds(10);

  private final ManagedChannel transport;
  private final Channel channel;

  Connection(String address, TokenFile token) {
    transport = Transport.channel(address);
    channel = ClientInterceptors.intercept(transport, new Headers(token));
  }

  /** One answer of a question that may be asked twice without harm. */
  <Q extends Message, R> R ask(MethodDescriptor<Q, R> method, Q request) {
    return ask(method, request, CALL_TIME);
  }

  /** As above, within a time of its own. */
  <Q extends Message, R> R ask(MethodDescriptor<Q, R> method, Q request, Duration time) {
    return repeated(
        time,
        nanos -> once(method, request, nanos),
        () -> {
          comeBackQuickly();
          return true;
        });
  }

  /** Repeats a call, which gets the nanoseconds left, while it is UNAVAILABLE and may go on. */
  static <R> R repeated(Duration time, LongFunction<R> call, BooleanSupplier mayGoOn) {
    long deadline = System.nanoTime() + time.toNanos();
    Backoff backoff = Backoff.ofCalls();
    while (true) {
      try {
        return call.apply(deadline - System.nanoTime());
      } catch (BatonException error) {
        Duration pause = longer(backoff.next(), error.retryAfter().orElse(Duration.ZERO));
        boolean away = error.code().orElse(null) == Status.Code.UNAVAILABLE;
        boolean inTime = System.nanoTime() + pause.toNanos() < deadline;
        if (!away || !inTime || !mayGoOn.getAsBoolean() || !Backoff.slept(pause)) {
          throw error;
        }
      }
    }
  }

  /** One answer of a call that is made once only. */
  <Q extends Message, R> R tell(MethodDescriptor<Q, R> method, Q request) {
    return once(method, request, CALL_TIME.toNanos());
  }

  /** The messages of a stream, which is ended by the io.grpc.Context that it is opened in. */
  <Q extends Message, R> Iterator<R> stream(MethodDescriptor<Q, R> method, Q request) {
    comeBackQuickly();
    return ClientCalls.blockingServerStreamingCall(channel, method, CallOptions.DEFAULT, request);
  }

  /** Opens the stream over which an app receives its work. */
  void attach(StreamObserver<AttachResponse> receiver) {
    comeBackQuickly();
    AppStreamGrpc.newStub(channel).attach(receiver);
  }

  void close() {
    transport.shutdownNow();
  }

  private <Q extends Message, R> R once(MethodDescriptor<Q, R> method, Q request, long nanos) {
    CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(nanos, TimeUnit.NANOSECONDS);
    try {
      return ClientCalls.blockingUnaryCall(channel, method, options, request);
    } catch (StatusRuntimeException error) {
      throw Errors.of(error, namesRun(request));
    }
  }

  /** gRPC waits up to two minutes before it connects again; trust lasts three seconds. */
  private void comeBackQuickly() {
    transport.resetConnectBackoff();
  }

  private static Duration longer(Duration one, Duration other) {
    return one.compareTo(other) > 0 ? one : other;
  }

  private static boolean namesRun(Message request) {
    var field = request.getDescriptorForType().findFieldByName("run");
    return field != null && request.hasField(field);
  }

  /** Sends the token and the trace with every call. */
  private record Headers(TokenFile token) implements ClientInterceptor {
    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> listener, Metadata headers) {
          if (token != null) {
            headers.put(TOKEN, token.current());
          }
          String trace = Cluster.traceparent();
          if (trace != null) {
            headers.put(TRACEPARENT, trace);
          }
          super.start(listener, headers);
        }
      };
    }
  }
}
