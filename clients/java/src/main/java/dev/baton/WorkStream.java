package dev.baton;

import dev.baton.v1.AttachRequest;
import dev.baton.v1.AttachResponse;
import dev.baton.v1.CallStatus;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.Hello;
import dev.baton.v1.Leader;
import dev.baton.v1.LeadershipAnswer;
import dev.baton.v1.LeadershipChange;
import dev.baton.v1.LeadershipEvent;
import dev.baton.v1.LossReason;
import dev.baton.v1.OnBecomeLeaderRequest;
import dev.baton.v1.OnLoseLeadershipRequest;
import dev.baton.v1.RunKind;
import dev.baton.v1.Welcome;
import io.grpc.Status;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * One stream of work, from `hello` to its end: proto/baton/v1/stream.proto in Java.
 *
 * <p>When the stream ends, for whatever reason, the terms that began over it end too, its runs are
 * stopped and what waits for an answer fails. A sidecar that still lives sees the same.
 */
final class WorkStream implements ClientResponseObserver<AttachRequest, AttachResponse> {
  /** Completed when the sidecar has accepted this process. */
  final CompletableFuture<Welcome> welcomed = new CompletableFuture<>();

  /** Completed when the stream is over. */
  final CompletableFuture<Status> ended = new CompletableFuture<>();

  private final AppCalls app;
  private final Hello hello;
  private final StreamWriter writer;
  private final StreamCalls calls;
  private final OpenRuns runs = new OpenRuns();
  private final Map<String, ClusterContext> led = new ConcurrentHashMap<>();
  private final AtomicBoolean over = new AtomicBoolean();
  private volatile ClientCallStreamObserver<AttachRequest> call;

  WorkStream(AppCalls app, Hello hello) {
    this.app = app;
    this.hello = hello;
    writer = new StreamWriter(app.threads.timer());
    calls = new StreamCalls(writer, runs::isAlone);
  }

  /** Dials; what comes is handled in threads of gRPC, one message after the other. */
  void open() {
    app.sidecar.connection().attach(this);
    writer.open(call, AttachRequest.newBuilder().setHello(hello).build());
  }

  /** Asks for no more runs and no more terms; those there are go on. */
  void leave() {
    writer.capacity(0);
  }

  /** Sends what there is to say, and ends the stream from this side. */
  void finish() {
    writer.finish();
  }

  /** Ends the stream at once. */
  void cancel() {
    call.cancel("the app closes", null);
  }

  @Override
  public void beforeStart(ClientCallStreamObserver<AttachRequest> started) {
    call = started;
    started.setOnReadyHandler(writer::flush);
  }

  /** Handles the fields in the order that the contract gives. */
  @Override
  public void onNext(AttachResponse message) {
    long readAt = app.leading.clock.earliest();
    if (message.hasWelcome()) {
      writer.limit(message.getWelcome());
      app.sidecar.isOf(message.getWelcome().getCluster());
      welcomed.complete(message.getWelcome());
    }
    message.getLeadershipList().forEach(change -> change(change, readAt));
    message.getTrustList().forEach(leader -> trust(leader, readAt));
    message.getCancelsList().forEach(runs::cancel);
    message.getStoredList().forEach(calls::stored);
    message.getRunsList().forEach(this::run);
    if (message.hasPing()) {
      long number = message.getPing().getNumber();
      app.threads.handlers().execute(() -> writer.pong(number)); // proves that handlers can start
    }
  }

  @Override
  public void onError(Throwable error) {
    end(Status.fromThrowable(error));
  }

  @Override
  public void onCompleted() {
    end(Status.OK);
  }

  private void end(Status status) {
    if (!over.getAndSet(true)) {
      writer.close();
      LossReason reason =
          app.leading.isStopping()
              ? LossReason.LOSS_REASON_SHUTDOWN
              : LossReason.LOSS_REASON_LEASE_LOST;
      led.values().forEach(term -> app.leading.lose(term, reason, term.epoch()));
      calls.fail();
      runs.stop();
      welcomed.completeExceptionally(status.asRuntimeException());
      ended.complete(status);
    }
  }

  private void change(LeadershipChange change, long readAt) {
    if (change.hasBecome()) {
      become(change.getBecome(), readAt);
    } else if (change.hasLose()) {
      OnLoseLeadershipRequest lose = change.getLose();
      Cluster.Scope scope = scope(lose.getContext(), null);
      app.lose(scope, lose, answer(LeadershipEvent.LEADERSHIP_EVENT_LOSE, lose.getContext()));
    }
  }

  private void become(OnBecomeLeaderRequest become, long readAt) {
    Cluster.Scope scope = scope(become.getContext(), null);
    Long trustedUntil = Term.trustEnd(become, readAt, app.leading.clock);
    led.merge(scope.context().group(), scope.context(), WorkStream::newer);
    Consumer<Status> answer =
        answer(LeadershipEvent.LEADERSHIP_EVENT_BECOME, become.getContext());
    app.become(scope, trustedUntil, new Stoppable(), answer);
  }

  private void trust(Leader leader, long readAt) {
    app.leading
        .terms
        .get(ClusterContext.group(leader.getGroup()))
        .ifPresent(term -> term.hear(leader, readAt));
  }

  private void run(ExecuteRequest request) {
    Cluster.Scope scope =
        scope(
            request.getContext(),
            request.getTraceparent().isEmpty() ? null : request.getTraceparent());
    boolean counts = request.getKind() != RunKind.RUN_KIND_SINGLETON;
    OpenRuns.Run run = runs.open(request.getRunId(), request.getAttempt(), counts);
    StreamAnswer answer = new StreamAnswer(run, runs, writer);
    app.execute(new Delivery(request, scope, calls, answer)).ifPresent(run::began);
  }

  private Consumer<Status> answer(LeadershipEvent event, dev.baton.v1.ClusterContext context) {
    return status -> {
      LeadershipAnswer.Builder answer =
          LeadershipAnswer.newBuilder()
              .setEvent(event)
              .setGroup(context.getGroup())
              .setEpoch(context.getEpoch());
      if (!status.isOk()) {
        answer.setError(message(status));
      }
      writer.leadership(answer.build());
    };
  }

  /** Runs name neither cluster nor runner: they are those of the welcome. */
  private Cluster.Scope scope(dev.baton.v1.ClusterContext message, String traceparent) {
    Welcome welcome = welcomed.getNow(Welcome.getDefaultInstance());
    ClusterContext context = ClusterContext.of(message);
    return app.scope(context.of(welcome.getCluster(), welcome.getRunnerId()), traceparent);
  }

  private static ClusterContext newer(ClusterContext one, ClusterContext other) {
    return Long.compareUnsigned(one.epoch(), other.epoch()) > 0 ? one : other;
  }

  static CallStatus message(Status status) {
    String text = status.getDescription() == null ? "" : status.getDescription();
    return CallStatus.newBuilder()
        .setCode(status.getCode().value())
        .setMessage(Text.cut(text, Text.MESSAGE_MAX))
        .build();
  }
}
