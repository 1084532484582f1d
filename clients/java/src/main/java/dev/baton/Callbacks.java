package dev.baton;

import dev.baton.v1.AppCallbackGrpc;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.OnBecomeLeaderRequest;
import dev.baton.v1.OnBecomeLeaderResponse;
import dev.baton.v1.OnLoseLeadershipRequest;
import dev.baton.v1.OnLoseLeadershipResponse;
import dev.baton.v1.RunKind;
import io.grpc.Context.Key;
import io.grpc.Contexts;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;

/**
 * The service that the sidecar calls: proto/baton/v1/callback.proto in Java.
 *
 * <p>Hooks and handlers run in threads of their own, never in those of gRPC. Nothing of the user's
 * errors but their type leaves the process; the rest goes to the log.
 */
final class Callbacks extends AppCallbackGrpc.AppCallbackImplBase {
  private static final System.Logger LOG = System.getLogger("baton");
  private static final Key<String> TRACEPARENT = io.grpc.Context.key("traceparent");

  private final Sidecar sidecar;
  private final Leading leading;
  private final Handlers handlers;
  private final Executor threads;

  Callbacks(Sidecar sidecar, Leading leading, Handlers handlers, Executor threads) {
    this.sidecar = sidecar;
    this.leading = leading;
    this.handlers = handlers;
    this.threads = threads;
  }

  /** What the app can execute, by name. */
  record Handlers(Map<String, Handler> schedules, Map<String, Handler> singletons) {
    Handlers() {
      this(new ConcurrentHashMap<>(), new ConcurrentHashMap<>());
    }

    Optional<Handler> find(ExecuteRequest request) {
      boolean isSingleton = request.getKind() == RunKind.RUN_KIND_SINGLETON;
      return Optional.ofNullable((isSingleton ? singletons : schedules).get(request.getName()));
    }
  }

  @Override
  public void onBecomeLeader(
      OnBecomeLeaderRequest request, StreamObserver<OnBecomeLeaderResponse> answer) {
    Long trustedUntil = Term.trustEnd(request, leading.clock.earliest(), leading.clock);
    ClusterContext context = ClusterContext.of(request.getContext());
    if (leading.isStopping()) {
      refuse(answer, Status.UNAVAILABLE, "the app is stopping");
      return;
    }
    Stoppable hook = new Stoppable();
    onCancel(answer, hook::stop);
    start(context, () -> hook.run(() -> become(context, trustedUntil, answer)));
  }

  @Override
  public void onLoseLeadership(
      OnLoseLeadershipRequest request, StreamObserver<OnLoseLeadershipResponse> answer) {
    ClusterContext context = ClusterContext.of(request.getContext());
    onCancel(answer, () -> {});
    // Here, not in another thread: from now on the app does not lead.
    Cluster.within(
        scope(context),
        () ->
            leading
                .lose(context, request.getReason(), context.epoch())
                .thenAccept(agreed -> answerLoss(agreed, answer)));
  }

  @Override
  public void execute(ExecuteRequest request, StreamObserver<ExecuteResponse> answer) {
    ClusterContext context = ClusterContext.of(request.getContext());
    Optional<Term> term = leading.term(context.group(), context.epoch());
    if (term.isEmpty()) {
      refuseTerm(answer, context);
      return;
    }
    Optional<Handler> handler = handlers.find(request);
    if (handler.isEmpty()) {
      refuse(answer, Status.NOT_FOUND, "no handler for '" + request.getName() + "'");
      return;
    }
    Attempt attempt = new Attempt(request, term.get(), handler.get(), sidecar, answer);
    onCancel(answer, attempt::stop);
    if (term.get().begin(attempt)) {
      start(context, attempt::run);
    } else {
      refuseTerm(answer, context);
    }
  }

  private void become(
      ClusterContext context, Long trustedUntil, StreamObserver<OnBecomeLeaderResponse> answer) {
    try {
      leading.become(context, trustedUntil);
    } catch (Throwable error) {
      LOG.log(Level.ERROR, "the hook for becoming leader of " + context.group() + " failed", error);
      refuse(answer, Status.INTERNAL, "hook failed: " + error.getClass().getSimpleName());
      return;
    }
    answer.onNext(OnBecomeLeaderResponse.getDefaultInstance());
    answer.onCompleted();
  }

  private static void answerLoss(boolean agreed, StreamObserver<OnLoseLeadershipResponse> answer) {
    if (!agreed) {
      refuse(answer, Status.INTERNAL, "hook failed");
      return;
    }
    answer.onNext(OnLoseLeadershipResponse.getDefaultInstance());
    answer.onCompleted();
  }

  /** Runs it in a thread for hooks and handlers, within the cluster context. */
  private void start(ClusterContext context, Runnable work) {
    Cluster.Scope scope = scope(context);
    threads.execute(() -> Cluster.within(scope, work));
  }

  private Cluster.Scope scope(ClusterContext context) {
    return new Cluster.Scope(context, sidecar, TRACEPARENT.get());
  }

  private static void refuseTerm(StreamObserver<?> answer, ClusterContext context) {
    String epoch = Long.toUnsignedString(context.epoch());
    refuse(answer, Status.UNAVAILABLE, "not in term " + epoch);
  }

  private static void refuse(StreamObserver<?> answer, Status status, String message) {
    answer.onError(status.withDescription(message).asRuntimeException());
  }

  /** Also makes answers to a cancelled call go nowhere instead of failing. */
  private static void onCancel(StreamObserver<?> answer, Runnable action) {
    ((ServerCallStreamObserver<?>) answer).setOnCancelHandler(action);
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
