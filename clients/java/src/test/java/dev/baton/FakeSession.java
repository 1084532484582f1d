package dev.baton;

import com.google.protobuf.ByteString;
import dev.baton.v1.AttachRequest;
import dev.baton.v1.AttachResponse;
import dev.baton.v1.CallStatus;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Hello;
import dev.baton.v1.LeadershipAnswer;
import dev.baton.v1.LeadershipChange;
import dev.baton.v1.LeadershipEvent;
import dev.baton.v1.OnBecomeLeaderRequest;
import dev.baton.v1.OnLoseLeadershipRequest;
import dev.baton.v1.Ping;
import dev.baton.v1.RunAnswer;
import dev.baton.v1.RunCancel;
import dev.baton.v1.RunRef;
import dev.baton.v1.Stored;
import dev.baton.v1.StreamCheckpoint;
import dev.baton.v1.StreamHeartbeat;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/** One attached process, as the fake sidecar sees it. */
final class FakeSession implements FakePeer, StreamObserver<AttachRequest> {
  /** Everything that the app sent, in order. */
  final List<AttachRequest> received = new CopyOnWriteArrayList<>();

  /** Completed when the app has ended the stream, or it broke. */
  final CompletableFuture<Void> ended = new CompletableFuture<>();

  volatile Hello hello;

  /** The statuses to answer the next checkpoints with, before they are stored. */
  final List<Status> refusesStoring = new CopyOnWriteArrayList<>();

  private final FakeSidecar sidecar;
  private final ServerCallStreamObserver<AttachResponse> responses;
  private final Map<Object, CompletableFuture<Object>> waiting = new ConcurrentHashMap<>();
  private final Set<String> groups = ConcurrentHashMap.newKeySet();
  private boolean over;

  private record Key(Object kind, String group, long number, int attempt) {}

  FakeSession(FakeSidecar sidecar, ServerCallStreamObserver<AttachResponse> responses) {
    this.sidecar = sidecar;
    this.responses = responses;
    responses.setOnCancelHandler(this::gone);
    responses.disableAutoInboundFlowControl();
    responses.request(1);
  }

  /** While true, one more message of the app is read, and then none. */
  volatile boolean deaf;

  synchronized void send(AttachResponse message) {
    if (!over) {
      responses.onNext(message);
    }
  }

  /** Ends the stream from the side of the sidecar. */
  synchronized void end(Status status) {
    if (!over) {
      over = true;
      responses.onError(status.asRuntimeException());
      gone();
    }
  }

  synchronized boolean isOver() {
    return over;
  }

  @Override
  public void onNext(AttachRequest message) {
    boolean readsOn = !deaf; // before anybody is told of this message, and may change it
    received.add(message);
    if (message.hasHello()) {
      hello = message.getHello();
      send(AttachResponse.newBuilder().setWelcome(sidecar.stream.welcome).build());
    }
    if (message.hasPong()) {
      complete(new Key("pong", "", message.getPong().getNumber(), 0), true);
    }
    message.getLeadershipList().forEach(it -> complete(key(it), it));
    message.getCheckpointsList().forEach(this::store);
    message.getHeartbeatsList().forEach(this::store);
    message
        .getAnswersList()
        .forEach(it -> complete(new Key("run", "", it.getRunId(), it.getAttempt()), it));
    if (readsOn) {
      responses.request(1);
    }
  }

  /** Reads on after it was deaf. */
  void listen() {
    deaf = false;
    responses.request(1);
  }

  @Override
  public void onError(Throwable error) {
    gone();
  }

  @Override
  public void onCompleted() {
    synchronized (this) {
      if (!over) {
        over = true;
        responses.onCompleted();
      }
    }
    gone();
  }

  private synchronized void gone() {
    over = true;
    RuntimeException broken =
        Status.UNAVAILABLE.withDescription("stream broken").asRuntimeException();
    waiting.values().forEach(it -> it.completeExceptionally(broken));
    ended.complete(null);
  }

  /** Renews, or ends, the trust of every group that this process was made leader of. */
  void renew() {
    AttachResponse.Builder trust = AttachResponse.newBuilder();
    groups.forEach(group -> trust.addTrust(sidecar.leader(group)));
    if (trust.getTrustCount() > 0) {
      send(trust.build());
    }
  }

  CompletableFuture<LeadershipAnswer> become(OnBecomeLeaderRequest request) {
    groups.add(request.getContext().getGroup());
    LeadershipChange change = LeadershipChange.newBuilder().setBecome(request).build();
    return ask(
        key(LeadershipEvent.LEADERSHIP_EVENT_BECOME, request.getContext()),
        AttachResponse.newBuilder().addLeadership(change).build(),
        LeadershipAnswer.class);
  }

  CompletableFuture<LeadershipAnswer> lose(OnLoseLeadershipRequest request) {
    LeadershipChange change = LeadershipChange.newBuilder().setLose(request).build();
    return ask(
        key(LeadershipEvent.LEADERSHIP_EVENT_LOSE, request.getContext()),
        AttachResponse.newBuilder().addLeadership(change).build(),
        LeadershipAnswer.class);
  }

  CompletableFuture<RunAnswer> run(ExecuteRequest request) {
    return ask(
        runKey(request),
        AttachResponse.newBuilder().addRuns(onStream(request)).build(),
        RunAnswer.class);
  }

  /** Several runs in one message. */
  List<CompletableFuture<RunAnswer>> runAll(List<ExecuteRequest> requests) {
    List<CompletableFuture<RunAnswer>> answers =
        requests.stream().map(it -> expect(runKey(it), RunAnswer.class)).toList();
    AttachResponse.Builder message = AttachResponse.newBuilder();
    requests.forEach(it -> message.addRuns(onStream(it)));
    send(message.build());
    return answers;
  }

  CompletableFuture<Boolean> ping(long number) {
    return ask(
        new Key("pong", "", number, 0),
        AttachResponse.newBuilder().setPing(Ping.newBuilder().setNumber(number)).build(),
        Boolean.class);
  }

  void cancel(ExecuteRequest request) {
    RunCancel cancel =
        RunCancel.newBuilder()
            .setRunId(request.getRunId())
            .setAttempt(request.getAttempt())
            .setReason("cancelled")
            .build();
    send(AttachResponse.newBuilder().addCancels(cancel).build());
  }

  @Override
  public void onBecomeLeader(OnBecomeLeaderRequest request) {
    check(got(become(request)).getError());
  }

  @Override
  public void onLoseLeadership(OnLoseLeadershipRequest request) {
    check(got(lose(request)).getError());
  }

  @Override
  public ExecuteResponse execute(ExecuteRequest request) {
    CompletableFuture<RunAnswer> answer = run(request);
    io.grpc.Context.current()
        .addListener(
            cancelled -> {
              cancel(request);
              answer.completeExceptionally(Status.CANCELLED.asRuntimeException());
            },
            Runnable::run);
    check(got(answer).getStatus());
    return got(answer).getResponse();
  }

  private static <T> T got(CompletableFuture<T> answer) {
    try {
      return answer.get(120, TimeUnit.SECONDS);
    } catch (Exception error) {
      throw error.getCause() instanceof RuntimeException cause
          ? cause
          : new IllegalStateException(error);
    }
  }

  private static void check(CallStatus status) {
    if (status.getCode() != 0) {
      throw Status.fromCodeValue(status.getCode())
          .withDescription(status.getMessage())
          .asRuntimeException();
    }
  }

  private void store(StreamCheckpoint step) {
    Status status = refusesStoring.isEmpty() ? fence(step.getRun()) : refusesStoring.remove(0);
    if (status.isOk()) {
      ByteString value = step.getValue();
      sidecar.runs.get(step.getRun().getRunId()).checkpoints().put(step.getStep(), value);
    }
    stored(step.getNumber(), status);
  }

  private void store(StreamHeartbeat sign) {
    Status status = fence(sign.getRun());
    if (status.isOk()
        && !sidecar.runs.beat(sign.getRun(), sign.getProgress(), sign.getMessage())) {
      return;
    }
    stored(sign.getNumber(), status);
  }

  private Status fence(RunRef run) {
    return sidecar.isLive(run) ? Status.OK : Status.FAILED_PRECONDITION.withDescription("refused");
  }

  private void stored(long number, Status status) {
    Stored.Builder stored = Stored.newBuilder().setNumber(number);
    if (!status.isOk()) {
      stored.setError(WorkStream.message(status));
    }
    send(AttachResponse.newBuilder().addStored(stored).build());
  }

  /** As a sidecar sends it: what the welcome said is not repeated. */
  private ExecuteRequest onStream(ExecuteRequest request) {
    ExecuteRequest.Builder sent = request.toBuilder();
    sent.getContextBuilder().clearCluster().clearRunnerId();
    String trace = sidecar.sent(Connection.TRACEPARENT);
    return trace == null ? sent.build() : sent.setTraceparent(trace).build();
  }

  private <T> CompletableFuture<T> ask(Key key, AttachResponse message, Class<T> type) {
    CompletableFuture<T> answer = expect(key, type);
    send(message);
    return answer;
  }

  private synchronized <T> CompletableFuture<T> expect(Key key, Class<T> type) {
    CompletableFuture<Object> answer = new CompletableFuture<>();
    if (over) {
      answer.completeExceptionally(Status.UNAVAILABLE.asRuntimeException());
    }
    CompletableFuture<Object> before = waiting.put(key, answer);
    if (before != null) { // the same question twice: one answer for both is enough
      answer.thenAccept(before::complete);
    }
    return answer.thenApply(type::cast);
  }

  private void complete(Key key, Object answer) {
    CompletableFuture<Object> asked = waiting.remove(key);
    if (asked != null) {
      asked.complete(answer);
    }
  }

  private static Key runKey(ExecuteRequest request) {
    return new Key("run", "", request.getRunId(), request.getAttempt());
  }

  private static Key key(LeadershipAnswer answer) {
    return new Key(answer.getEvent(), answer.getGroup(), answer.getEpoch(), 0);
  }

  private static Key key(LeadershipEvent event, dev.baton.v1.ClusterContext context) {
    return new Key(event, context.getGroup(), context.getEpoch(), 0);
  }
}
