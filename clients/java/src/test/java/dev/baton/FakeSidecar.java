package dev.baton;

import com.google.protobuf.ByteString;
import dev.baton.v1.AppCallbackGrpc;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Leader;
import dev.baton.v1.LeadershipGetRequest;
import dev.baton.v1.LeadershipGetResponse;
import dev.baton.v1.LeadershipGrpc;
import dev.baton.v1.LeadershipListRequest;
import dev.baton.v1.LeadershipListResponse;
import dev.baton.v1.LeadershipResignRequest;
import dev.baton.v1.LeadershipResignResponse;
import dev.baton.v1.LeadershipWatchRequest;
import dev.baton.v1.LeadershipWatchResponse;
import dev.baton.v1.LossReason;
import dev.baton.v1.OnBecomeLeaderRequest;
import dev.baton.v1.OnLoseLeadershipRequest;
import dev.baton.v1.RunKind;
import dev.baton.v1.RunRef;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** A sidecar in this process, over real gRPC, that leads, loses and delivers as a test tells it. */
final class FakeSidecar implements AutoCloseable {
  private static final Duration TRUST = Duration.ofSeconds(3);

  final FakeState state = new FakeState(this);
  final FakeRuns runs = new FakeRuns(this);
  final FakeServices services = new FakeServices(this);
  final FakeStream stream = new FakeStream(this);
  final FakeJobs jobs = new FakeJobs(this);
  final FakeJobsService jobsService = new FakeJobsService(jobs);
  final List<Metadata> calls = new CopyOnWriteArrayList<>();
  final List<String> methods = new CopyOnWriteArrayList<>();
  private final Map<String, Lead> leads = new ConcurrentHashMap<>();
  private final List<Watcher> watchers = new CopyOnWriteArrayList<>();
  private final AtomicLong epochs = new AtomicLong(100);
  private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
  private final Metadata toApp = new Metadata();
  private final String apiToken;
  private final Server server;
  private volatile boolean frozen;
  private ManagedChannel app;

  FakeSidecar() throws IOException {
    this("127.0.0.1:0", null);
  }

  FakeSidecar(String address, String apiToken) throws IOException {
    this.apiToken = apiToken;
    server =
        Transport.listener(address)
            .intercept(new Recorder())
            .addService(new Leaderships())
            .addService(state)
            .addService(runs)
            .addService(services.deferreds)
            .addService(services.ids)
            .addService(services.schedules)
            .addService(services.singletons)
            .addService(stream)
            .addService(jobsService)
            .build()
            .start();
    served = Transport.served(address, server);
    timer.scheduleAtFixedRate(this::renew, 100, 100, TimeUnit.MILLISECONDS);
  }

  private final String served;

  /** Whether Resign ends the term; and whether it was asked for. */
  volatile boolean obeysResign = true;

  volatile boolean resigned;

  /** What is led, as far as the sidecar is concerned. */
  record Lead(long epoch, Duration trust, boolean draining) {}

  private record Watcher(String group, StreamObserver<LeadershipWatchResponse> observer) {}

  /** Serves an app beside a new sidecar. */
  static FakeSidecar beside(Baton app) throws IOException {
    FakeSidecar fake = new FakeSidecar();
    app.start(fake.options());
    fake.callAppAt(app.address());
    return fake;
  }

  /** Attaches an app to a new sidecar. */
  static FakeSidecar attached(Baton app) throws IOException, InterruptedException {
    FakeSidecar fake = new FakeSidecar();
    app.attach(fake.attachOptions());
    fake.stream.session();
    return fake;
  }

  Options options() {
    return Options.from(Map.of("BATON_API_ADDRESS", address(), "BATON_APP_ADDRESS", "127.0.0.1:0"));
  }

  Options attachOptions() {
    return Options.from(Map.of("BATON_API_ADDRESS", address()));
  }

  String address() {
    return served;
  }

  void callAppAt(String address) {
    app = Transport.channel(address);
  }

  /** Sends this with every call to the app. */
  void send(Metadata.Key<String> key, String value) {
    toApp.put(key, value);
  }

  String sent(Metadata.Key<String> key) {
    return toApp.get(key);
  }

  /** The app: the process attached, else the one served. */
  FakePeer app() {
    FakeSession session = stream.newest();
    return session == null ? new FakePeer.Called(this::stub) : session;
  }

  private AppCallbackGrpc.AppCallbackBlockingStub stub() {
    return AppCallbackGrpc.newBlockingStub(app)
        .withWaitForReady()
        .withDeadlineAfter(120, TimeUnit.SECONDS)
        .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(toApp));
  }

  ManagedChannel channel() {
    return app;
  }

  /** Begins a term and tells the app; its epoch. */
  long lead() {
    return lead("default", TRUST);
  }

  long lead(String group, Duration trust) {
    long epoch = begin(group, trust);
    OnBecomeLeaderRequest request =
        OnBecomeLeaderRequest.newBuilder()
            .setContext(context(group, epoch, true))
            .setTrustedFor(Times.message(trust))
            .build();
    app().onBecomeLeader(request);
    return epoch;
  }

  /** Begins a term without telling the app; its epoch. */
  long begin(String group, Duration trust) {
    long epoch = epochs.incrementAndGet();
    leads.put(group, new Lead(epoch, trust, false));
    return epoch;
  }

  /** Renews the trust of this term, unless it renews that of a later one. */
  void renews(long epoch, Duration trust) {
    leads.merge(
        "default",
        new Lead(epoch, trust, false),
        (held, given) -> held.epoch() > given.epoch() ? held : given);
  }

  void lose() {
    lose("default", LossReason.LOSS_REASON_LEASE_LOST);
  }

  void lose(String group, LossReason reason) {
    Lead lead = leads.remove(group);
    OnLoseLeadershipRequest request =
        OnLoseLeadershipRequest.newBuilder()
            .setContext(context(group, lead.epoch(), false))
            .setReason(reason)
            .build();
    app().onLoseLeadership(request);
  }

  /** Tells that a hand-over has begun. */
  void drain(String group) {
    leads.computeIfPresent(group, (name, lead) -> new Lead(lead.epoch(), lead.trust(), true));
    renew();
  }

  /** Renews no trust any more. */
  void freeze() {
    frozen = true;
  }

  /** Breaks every stream, as a restart would. */
  void breakWatches() {
    for (Watcher watcher : watchers) {
      watchers.remove(watcher);
      watcher.observer().onError(Status.UNAVAILABLE.asRuntimeException());
    }
  }

  FakeRuns.Record schedule(String name, Object payload) {
    return runs.add(name, RunKind.RUN_KIND_SCHEDULE, payload);
  }

  FakeRuns.Record singleton(String name) {
    return runs.add(name, RunKind.RUN_KIND_SINGLETON, ByteString.EMPTY);
  }

  /** Delivers a run once (more); its answer, or the status that the app ended it with. */
  ExecuteResponse deliver(FakeRuns.Record run) {
    Lead lead = leads.get("default");
    ExecuteRequest request = run.next(lead == null ? 0 : lead.epoch());
    String owned = request.getContext().getEntityType() + "-state:" + run.name();
    ExecuteResponse response =
        app().execute(request.toBuilder().setState(state.value(owned)).build());
    if (response.getSucceeded().hasState()) {
      state.write(owned, response.getSucceeded().getState());
    }
    if (response.getFailed().hasState()) {
      state.write(owned, response.getFailed().getState());
    }
    return response;
  }

  /** Makes and delivers a run of a schedule. */
  ExecuteResponse execute(String name, Object payload) {
    return deliver(schedule(name, payload));
  }

  /** Whether a reference names the live attempt of the current term. */
  boolean isLive(RunRef ref) {
    FakeRuns.Record run = runs.get(ref.getRunId());
    Lead lead = leads.get("default");
    long epoch = jobs.all.containsKey(ref.getRunId()) ? FakeJobs.WORKER : -1;
    return run != null
        && run.attempt() == ref.getAttempt()
        && ref.getEpoch() == (epoch < 0 && lead != null ? lead.epoch() : epoch);
  }

  static dev.baton.v1.ClusterContext context(String group, long epoch, boolean leads) {
    return dev.baton.v1.ClusterContext.newBuilder()
        .setCluster("test")
        .setRunnerId("fake")
        .setGroup(group)
        .setEpoch(epoch)
        .setIsLeader(leads)
        .build();
  }

  static <T> void answer(StreamObserver<T> observer, T message) {
    observer.onNext(message);
    observer.onCompleted();
  }

  static void refuse(StreamObserver<?> observer, Status status) {
    observer.onError(status.withDescription("refused").asRuntimeException());
  }

  private void renew() {
    if (!frozen) {
      for (Watcher watcher : watchers) {
        tell(watcher);
      }
      stream.sessions.forEach(FakeSession::renew);
    }
  }

  private void tell(Watcher watcher) {
    synchronized (watcher.observer()) {
      Leader leader = leader(watcher.group());
      watcher.observer().onNext(LeadershipWatchResponse.newBuilder().setLeader(leader).build());
    }
  }

  Leader leader(String group) {
    Lead lead = leads.get(group);
    Leader.Builder leader = Leader.newBuilder().setGroup(group);
    if (lead != null) {
      leader
          .setIsLeader(true)
          .setEpoch(lead.epoch())
          .setTrustedFor(Times.message(lead.trust()))
          .setDraining(lead.draining());
    }
    return leader.build();
  }

  @Override
  public void close() {
    timer.shutdownNow();
    server.shutdownNow();
    if (app != null) {
      app.shutdownNow();
    }
  }

  private final class Leaderships extends LeadershipGrpc.LeadershipImplBase {
    @Override
    public void get(LeadershipGetRequest request, StreamObserver<LeadershipGetResponse> answer) {
      Leader leader = leader(request.getGroup());
      answer(answer, LeadershipGetResponse.newBuilder().setLeader(leader).build());
    }

    /** One group per page. */
    @Override
    public void list(LeadershipListRequest request, StreamObserver<LeadershipListResponse> answer) {
      boolean first = request.getPageToken().isEmpty();
      answer(
          answer,
          LeadershipListResponse.newBuilder()
              .addLeaders(leader(first ? "default" : "reports"))
              .setNextPageToken(first ? "more" : "")
              .build());
    }

    @Override
    public void resign(
        LeadershipResignRequest request, StreamObserver<LeadershipResignResponse> answer) {
      drain(request.getGroup());
      Leader leader = leader(request.getGroup());
      answer(answer, LeadershipResignResponse.newBuilder().setLeader(leader).build());
      if (obeysResign) {
        timer.schedule(
            () -> lose(request.getGroup(), LossReason.LOSS_REASON_RESIGNED),
            600,
            TimeUnit.MILLISECONDS);
      }
      resigned = true;
    }

    @Override
    public void watch(
        LeadershipWatchRequest request, StreamObserver<LeadershipWatchResponse> answer) {
      Watcher watcher = new Watcher(request.getGroup(), answer);
      ((ServerCallStreamObserver<?>) answer).setOnCancelHandler(() -> watchers.remove(watcher));
      watchers.add(watcher);
      if (!frozen) {
        tell(watcher);
      }
    }
  }

  /** Keeps the metadata of every call, and checks the token. */
  private final class Recorder implements ServerInterceptor {
    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
      calls.add(headers);
      methods.add(call.getMethodDescriptor().getBareMethodName());
      if (apiToken == null || apiToken.equals(headers.get(Connection.TOKEN))) {
        return next.startCall(call, headers);
      }
      call.close(Status.UNAUTHENTICATED, new Metadata());
      return new ServerCall.Listener<>() {};
    }
  }

  /** Waits until something holds. */
  static void eventually(java.util.function.BooleanSupplier condition) throws InterruptedException {
    Instant end = Instant.now().plusSeconds(60);
    while (!condition.getAsBoolean()) {
      if (Instant.now().isAfter(end)) {
        throw new AssertionError("it did not happen within 60 s");
      }
      Thread.sleep(10);
    }
  }
}
