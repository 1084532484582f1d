package dev.baton;

import com.google.protobuf.ByteString;
import dev.baton.v1.Checkpoint;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.Run;
import dev.baton.v1.RunKind;
import dev.baton.v1.RunRef;
import dev.baton.v1.RunsCancelRequest;
import dev.baton.v1.RunsCancelResponse;
import dev.baton.v1.RunsCheckpointRequest;
import dev.baton.v1.RunsCheckpointResponse;
import dev.baton.v1.RunsGetRequest;
import dev.baton.v1.RunsGetResponse;
import dev.baton.v1.RunsGrpc;
import dev.baton.v1.RunsHeartbeatRequest;
import dev.baton.v1.RunsHeartbeatResponse;
import dev.baton.v1.RunsListRequest;
import dev.baton.v1.RunsListResponse;
import dev.baton.v1.RunsRetryRequest;
import dev.baton.v1.RunsRetryResponse;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;

/** Runs in memory: attempts, checkpoints, heartbeats, fenced by the live attempt. */
final class FakeRuns extends RunsGrpc.RunsImplBase {
  private final FakeSidecar sidecar;
  private final Map<Long, Record> all = new ConcurrentSkipListMap<>();
  private final AtomicLong ids = new AtomicLong();

  /** The message of a heartbeat that is noted but never answered: whoever sends it stays there. */
  volatile String holdsAt = "";

  FakeRuns(FakeSidecar sidecar) {
    this.sidecar = sidecar;
  }

  /** One run. */
  static final class Record {
    private final long id;
    private final String name;
    private final RunKind kind;
    private final ByteString payload;
    private final Map<String, ByteString> checkpoints =
        Collections.synchronizedMap(new LinkedHashMap<>());
    private volatile int attempt;
    private volatile double progress;
    private volatile String message = "";

    private Record(long id, String name, RunKind kind, ByteString payload) {
      this.id = id;
      this.name = name;
      this.kind = kind;
      this.payload = payload;
    }

    long id() {
      return id;
    }

    String name() {
      return name;
    }

    int attempt() {
      return attempt;
    }

    String message() {
      return message;
    }

    Map<String, ByteString> checkpoints() {
      return checkpoints;
    }

    ExecuteRequest next(long epoch) {
      attempt++;
      String type = kind == RunKind.RUN_KIND_SINGLETON ? "singleton" : "schedule";
      ExecuteRequest.Builder request =
          ExecuteRequest.newBuilder()
              .setContext(
                  FakeSidecar.context("default", epoch, true).toBuilder()
                      .setEntityType(type)
                      .setEntityId(name))
              .setRunId(id)
              .setKind(kind)
              .setName(name)
              .setAttempt(attempt)
              .setScheduledAt(Times.message(Instant.EPOCH))
              .setIdempotencyKey("key-" + id)
              .setPayload(payload)
              .setStateVersion(1);
      checkpoints.forEach(
          (step, value) ->
              request.addCheckpoints(Checkpoint.newBuilder().setStep(step).setValue(value)));
      return request.build();
    }

    Run message(boolean cancelled) {
      return Run.newBuilder()
          .setRunId(id)
          .setName(name)
          .setAttempt(attempt)
          .setProgress(progress)
          .setProgressMessage(message)
          .setCancelRequested(cancelled)
          .build();
    }
  }

  Record add(String name, RunKind kind, Object payload) {
    ByteString bytes = payload == null ? ByteString.EMPTY : Json.toBytes(payload);
    Record run = new Record(ids.incrementAndGet(), name, kind, bytes);
    all.put(run.id(), run);
    return run;
  }

  Record get(long id) {
    return all.get(id);
  }

  @Override
  public void checkpoint(
      RunsCheckpointRequest request, StreamObserver<RunsCheckpointResponse> answer) {
    if (fenced(request.getRun(), answer)) {
      return;
    }
    get(request.getRun().getRunId()).checkpoints.put(request.getStep(), request.getValue());
    FakeSidecar.answer(answer, RunsCheckpointResponse.getDefaultInstance());
  }

  @Override
  public void heartbeat(
      RunsHeartbeatRequest request, StreamObserver<RunsHeartbeatResponse> answer) {
    if (fenced(request.getRun(), answer)) {
      return;
    }
    if (beat(request.getRun(), request.getProgress(), request.getMessage())) {
      FakeSidecar.answer(answer, RunsHeartbeatResponse.getDefaultInstance());
    }
  }

  /** Notes a heartbeat; whether it is answered. */
  boolean beat(RunRef ref, double progress, String message) {
    Record run = get(ref.getRunId());
    run.progress = progress;
    run.message = message;
    return holdsAt.isEmpty() || !holdsAt.equals(message);
  }

  @Override
  public void get(RunsGetRequest request, StreamObserver<RunsGetResponse> answer) {
    Record run = get(request.getRunId());
    if (run == null) {
      FakeSidecar.refuse(answer, Status.NOT_FOUND);
    } else {
      FakeSidecar.answer(answer, RunsGetResponse.newBuilder().setRun(run.message(false)).build());
    }
  }

  @Override
  public void list(RunsListRequest request, StreamObserver<RunsListResponse> answer) {
    RunsListResponse.Builder found = RunsListResponse.newBuilder();
    all.values().stream()
        .filter(run -> run.name.equals(request.getName()))
        .forEach(run -> found.addRuns(run.message(false)));
    FakeSidecar.answer(answer, found.build());
  }

  @Override
  public void cancel(RunsCancelRequest request, StreamObserver<RunsCancelResponse> answer) {
    Run run = get(request.getRunId()).message(true);
    FakeSidecar.answer(answer, RunsCancelResponse.newBuilder().setRun(run).build());
  }

  @Override
  public void retry(RunsRetryRequest request, StreamObserver<RunsRetryResponse> answer) {
    FakeSidecar.refuse(answer, Status.FAILED_PRECONDITION);
  }

  private boolean fenced(RunRef run, StreamObserver<?> answer) {
    boolean fenced = !sidecar.isLive(run);
    if (fenced) {
      FakeSidecar.refuse(answer, Status.FAILED_PRECONDITION);
    }
    return fenced;
  }
}
