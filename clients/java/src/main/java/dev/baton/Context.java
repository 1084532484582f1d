package dev.baton;

import com.google.protobuf.ByteString;
import dev.baton.v1.Checkpoint;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecutionMetadata;
import dev.baton.v1.JobPriority;
import dev.baton.v1.RunKind;
import dev.baton.v1.RunRef;
import dev.baton.v1.RunsCheckpointRequest;
import dev.baton.v1.RunsHeartbeatRequest;
import dev.baton.v1.StateGrpc;
import dev.baton.v1.StatePutRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * What a handler is given: its input, its owned state, durable steps, deferreds and progress.
 *
 * <p>One Context serves one attempt. Everything it writes carries the attempt's RunRef, so that a
 * later attempt or a newer term makes it fail with {@link BatonException.Fenced} instead of
 * overwriting anything.
 */
public final class Context {
  private final ExecuteRequest request;
  private final ClusterContext cluster;
  private final CountDownLatch draining;
  private final Sidecar sidecar;
  private final RunCalls calls;
  private final Stoppable work;
  private final Map<String, ByteString> stored = new ConcurrentHashMap<>();
  private final Set<String> begun = ConcurrentHashMap.newKeySet();
  private volatile ByteString state;

  Context(Delivery delivery, CountDownLatch draining, Stoppable work) {
    this.request = delivery.request();
    this.cluster = delivery.scope().context();
    this.sidecar = delivery.scope().sidecar();
    this.calls = delivery.calls();
    this.draining = draining;
    this.work = work;
    this.state = request.getState();
    for (Checkpoint checkpoint : request.getCheckpointsList()) {
      stored.put(checkpoint.getStep(), checkpoint.getValue());
    }
  }

  /** Of the schedule, singleton or job. */
  public String name() {
    return request.getName();
  }

  /** What made the run. */
  public RunKind kind() {
    return request.getKind();
  }

  /** The run; the same in every attempt. */
  public long runId() {
    return request.getRunId();
  }

  /** 1 for the first delivery; higher with each further one. */
  public int attempt() {
    return request.getAttempt();
  }

  /** The fencing token of the term; of a job, that of the worker. */
  public long epoch() {
    return cluster.epoch();
  }

  /** The same for every attempt of this run, and for no other run. */
  public String idempotencyKey() {
    return request.getIdempotencyKey();
  }

  /** The tick's due time; for a trigger when it was asked for. */
  public Instant scheduledAt() {
    return Times.instant(request.getScheduledAt());
  }

  /** When this attempt is cancelled. */
  public Optional<Instant> deadline() {
    return request.hasDeadline()
        ? Optional.of(Times.instant(request.getDeadline()))
        : Optional.empty();
  }

  /** What is remembered of earlier runs. */
  public ExecutionMetadata metadata() {
    return request.getMetadata();
  }

  /** The key of a job; empty: it has none. */
  public String key() {
    return request.getJob().getKey();
  }

  /** The queue of a job. */
  public String queue() {
    return request.getJob().getQueue();
  }

  /** How much a job weighs against others. */
  public JobPriority priority() {
    return request.getJob().getPriority();
  }

  /** The labels that a job was submitted with. */
  public Map<String, String> labels() {
    return request.getJob().getLabelsMap();
  }

  /** The batch of a job; empty: it belongs to none. */
  public String batch() {
    return request.getJob().getBatch();
  }

  /** When a job was submitted. */
  public Instant submittedAt() {
    return Times.instant(request.getJob().getSubmittedAt());
  }

  /** How often a job was taken back from a pod that died or lost its lease. */
  public int rescues() {
    return request.getJob().getRescues();
  }

  /** Where this call comes from. */
  public ClusterContext cluster() {
    return cluster;
  }

  /** The sidecar's services. */
  public Sidecar sidecar() {
    return sidecar;
  }

  /** The input. */
  public ByteString payload() {
    return request.getPayload();
  }

  /** The input from JSON; null if it is empty. */
  public <T> T payload(Class<T> type) {
    return Json.fromBytes(payload(), type);
  }

  /** Of the input, as configured. */
  public String contentType() {
    return request.getContentType();
  }

  /** The owned state. */
  public ByteString state() {
    return state;
  }

  /** The owned state from JSON; null if it is empty. */
  public <T> T state(Class<T> type) {
    return Json.fromBytes(state, type);
  }

  /** As above; what is missing, or fields that an object lacks, come from {@code initial}. */
  public <T> T state(Class<T> type, T initial) {
    return Json.fromBytes(state, type, initial);
  }

  /** The declared version that the owned state was made for. */
  public int stateVersion() {
    return request.getStateVersion();
  }

  /** Replaces the owned state now, not only when the run ends. */
  public void putState(Object value) {
    StatePutRequest put =
        StatePutRequest.newBuilder()
            .setKey(stateKey())
            .setValue(Json.toBytes(value))
            .setRun(runRef())
            .setRequestId(UUID.randomUUID().toString())
            .build();
    sidecar.connection().ask(StateGrpc.getPutMethod(), put);
    state = put.getValue();
  }

  /**
   * Runs a function once per run, not once per attempt, and remembers what it returned, as JSON or
   * bytes. If the process dies between the function's end and the answer of the sidecar, the
   * function runs again.
   */
  public <T> T step(String name, Class<T> type, Callable<? extends T> function) throws Exception {
    if (!begun.add(name)) {
      throw new Ending.Fail("step '" + name + "' was used twice in one attempt")
          .code("StepNameReused");
    }
    ByteString value = stored.get(name);
    if (value == null) {
      value = Json.toStored(function.call());
      RunsCheckpointRequest checkpoint =
          RunsCheckpointRequest.newBuilder()
              .setRun(runRef())
              .setStep(name)
              .setValue(value)
              .build();
      calls.checkpoint(checkpoint);
      stored.put(name, value);
    }
    return Json.fromStored(value, type);
  }

  /** As above, for what returns nothing. */
  public void step(String name, Action action) throws Exception {
    step(
        name,
        Void.class,
        () -> {
          action.run();
          return null;
        });
  }

  /** A step that returns nothing. */
  @FunctionalInterface
  public interface Action {
    /** Does it. */
    void run() throws Exception;
  }

  /** The deferred of that name of this run: the same one, and token, in every attempt. */
  public Deferred deferred(String name) {
    return sidecar.deferreds().create(name, null, runRef());
  }

  /** As above; it expires this long after it was first made. */
  public Deferred deferred(String name, Duration ttl) {
    return sidecar.deferreds().create(name, ttl, runRef());
  }

  /** Reports that this run is alive. */
  public void heartbeat() {
    heartbeat(RunsHeartbeatRequest.newBuilder());
  }

  /** Reports that this run is alive, and what it is doing. */
  public void heartbeat(String message) {
    heartbeat(RunsHeartbeatRequest.newBuilder().setMessage(message));
  }

  /** Reports that this run is alive, how far it is (0 to 1), and what it is doing. */
  public void heartbeat(double progress, String message) {
    heartbeat(RunsHeartbeatRequest.newBuilder().setProgress(progress).setMessage(message));
  }

  /** Whether this attempt must stop; its thread was interrupted then. */
  public boolean isCancelled() {
    return work.isStopped();
  }

  /** Whether the leader is handing over, or the app of a job is stopping: begin nothing new. */
  public boolean isDraining() {
    return draining.getCount() == 0;
  }

  /** Waits at most so long for that to begin; whether it has. */
  public boolean awaitDraining(Duration time) throws InterruptedException {
    return draining.await(time.toNanos(), TimeUnit.NANOSECONDS);
  }

  /** Names this attempt, for calls that must fail once it is over. */
  public RunRef runRef() {
    return RunRef.newBuilder()
        .setRunId(runId())
        .setAttempt(attempt())
        .setEpoch(epoch())
        .build();
  }

  /** Of a job, its name belongs to the key: other jobs may have the same one. */
  private String stateKey() {
    String owner = kind() == RunKind.RUN_KIND_JOB ? name() + "/" + key() : cluster.entityId();
    return cluster.entityType() + "-state:" + owner;
  }

  private void heartbeat(RunsHeartbeatRequest.Builder heartbeat) {
    calls.heartbeat(heartbeat.setRun(runRef()).build());
  }
}
