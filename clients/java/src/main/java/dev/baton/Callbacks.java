package dev.baton;

import dev.baton.v1.AppCallbackGrpc;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.OnBecomeLeaderRequest;
import dev.baton.v1.OnBecomeLeaderResponse;
import dev.baton.v1.OnLoseLeadershipRequest;
import dev.baton.v1.OnLoseLeadershipResponse;
import io.grpc.Context.Key;
import io.grpc.Contexts;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.CompletableFuture;

/** The service that the sidecar calls: proto/baton/v1/callback.proto in Java. */
final class Callbacks extends AppCallbackGrpc.AppCallbackImplBase {
  private static final Key<String> TRACEPARENT = io.grpc.Context.key("traceparent");

  private final AppCalls app;
  private final RunCalls calls;

  Callbacks(AppCalls app) {
    this.app = app;
    this.calls = new RunCalls.Unary(app.sidecar.connection());
  }

  @Override
  public void onBecomeLeader(
      OnBecomeLeaderRequest request, StreamObserver<OnBecomeLeaderResponse> answer) {
    Clock clock = app.leading.clock;
    Long trustedUntil = Term.trustEnd(request, clock.earliest(), clock);
    Stoppable hook = new Stoppable();
    onCancel(answer, hook::stop);
    app.become(
        scope(request.getContext()),
        trustedUntil,
        hook,
        status -> answer(answer, status, OnBecomeLeaderResponse.getDefaultInstance()));
  }

  @Override
  public void onLoseLeadership(
      OnLoseLeadershipRequest request, StreamObserver<OnLoseLeadershipResponse> answer) {
    onCancel(answer, () -> {});
    app.lose(
        scope(request.getContext()),
        request,
        status -> answer(answer, status, OnLoseLeadershipResponse.getDefaultInstance()));
  }

  @Override
  public void execute(ExecuteRequest request, StreamObserver<ExecuteResponse> answer) {
    CompletableFuture<Attempt> begun = new CompletableFuture<>();
    onCancel(answer, () -> begun.thenAccept(attempt -> attempt.stop(Status.CANCELLED)));
    Delivery delivery =
        new Delivery(request, scope(request.getContext()), calls, new CallAnswer(answer));
    app.execute(delivery).ifPresent(begun::complete);
  }

  private Cluster.Scope scope(dev.baton.v1.ClusterContext context) {
    return app.scope(ClusterContext.of(context), TRACEPARENT.get());
  }

  private static <T> void answer(StreamObserver<T> answer, Status status, T message) {
    if (status.isOk()) {
      answer.onNext(message);
      answer.onCompleted();
    } else {
      answer.onError(status.asRuntimeException());
    }
  }

  /** Also makes answers to a cancelled call go nowhere instead of failing. */
  private static void onCancel(StreamObserver<?> answer, Runnable action) {
    ((ServerCallStreamObserver<?>) answer).setOnCancelHandler(action);
  }

  /** The answer of a run that arrived by a call. */
  private record CallAnswer(StreamObserver<ExecuteResponse> call) implements Delivery.Answer {
    @Override
    public void response(ExecuteResponse response) {
      answer(call, Status.OK, response);
    }

    @Override
    public void status(Status status) {
      answer(call, status, null);
    }
  }

  /** Checks the token, if there is one, and keeps the trace for what is called below. */
  record Gate(TokenFile token) implements ServerInterceptor {
    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
      if (token != null && !token.accepts(headers.get(Connection.TOKEN))) {
        String problem = "baton-token is missing or wrong";
        call.close(Status.UNAUTHENTICATED.withDescription(problem), new Metadata());
        return new ServerCall.Listener<>() {};
      }
      String trace = headers.get(Connection.TRACEPARENT);
      io.grpc.Context traced = io.grpc.Context.current().withValue(TRACEPARENT, trace);
      return Contexts.interceptCall(traced, call, headers, next);
    }
  }
}
