package dev.baton;

import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Failed;
import dev.baton.v1.Job;
import dev.baton.v1.JobContext;
import dev.baton.v1.JobSpec;
import dev.baton.v1.Outcome;
import dev.baton.v1.RunKind;
import dev.baton.v1.RunState;
import dev.baton.v1.Snoozed;
import dev.baton.v1.SubmittedJob;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Jobs in memory: started at once when they are due, on a clock that a test moves. */
final class FakeJobs {
  static final long WORKER = 7;

  final Map<Long, Entry> all = new ConcurrentSkipListMap<>();
  final Set<String> paused = ConcurrentHashMap.newKeySet();
  private final FakeSidecar sidecar;
  private final ExecutorService threads = Executors.newCachedThreadPool(Threads.daemons("jobs"));
  private Instant now = Instant.parse("2027-01-01T00:00:00Z");

  FakeJobs(FakeSidecar sidecar) {
    this.sidecar = sidecar;
  }

  /** One job; guarded by the FakeJobs. */
  static final class Entry {
    final JobSpec spec;
    final FakeRuns.Record run;
    final CompletableFuture<Void> ended = new CompletableFuture<>();
    ExecuteRequest running;
    Instant dueAt;
    Job.Builder job;

    Entry(JobSpec spec, FakeRuns.Record run) {
      this.spec = spec;
      this.run = run;
    }
  }

  synchronized SubmittedJob submit(JobSpec spec) {
    for (Entry other : all.values()) {
      boolean live = other.job.getState() != RunState.RUN_STATE_ENDED;
      if (spec.hasUnique() && live && other.spec.getUnique().equals(spec.getUnique())) {
        return SubmittedJob.newBuilder().setJobId(other.run.id()).setDuplicate(true).build();
      }
    }
    Entry entry =
        new Entry(spec, sidecar.runs.add(spec.getName(), RunKind.RUN_KIND_JOB, spec.getPayload()));
    entry.dueAt = spec.hasDelay() ? now.plus(Times.duration(spec.getDelay())) : now;
    entry.job =
        Job.newBuilder()
            .setJobId(entry.run.id())
            .setName(spec.getName())
            .setQueue(spec.getQueue().isEmpty() ? "default" : spec.getQueue())
            .setPriority(spec.getPriority())
            .setKey(spec.getKey())
            .setPayload(spec.getPayload())
            .setState(RunState.RUN_STATE_QUEUED);
    all.put(entry.run.id(), entry);
    return SubmittedJob.newBuilder().setJobId(entry.run.id()).build();
  }

  /** Starts what is due. */
  synchronized void start() {
    for (Entry entry : all.values()) {
      boolean waits =
          entry.job.getState() == RunState.RUN_STATE_QUEUED
              || entry.job.getState() == RunState.RUN_STATE_WAITING;
      if (waits && !entry.dueAt.isAfter(now) && !paused.contains(entry.job.getQueue())) {
        start(entry);
      }
    }
  }

  /** Moves the clock, and starts what is due then. */
  void advance(Duration time) {
    synchronized (this) {
      now = now.plus(time);
    }
    start();
  }

  private void start(Entry entry) {
    FakeSession session = sidecar.stream.newest();
    if (session != null && !session.hello.getJobsList().contains(entry.spec.getName())) {
      return;
    }
    ExecuteRequest request = request(entry);
    entry.running = request;
    entry.job.setState(RunState.RUN_STATE_RUNNING).setAttempt(request.getAttempt());
    FakePeer app = sidecar.app();
    threads.execute(
        () -> {
          try {
            ended(entry, app.execute(request));
          } catch (StatusRuntimeException undeliverable) {
            queued(entry);
          }
        });
  }

  private ExecuteRequest request(Entry entry) {
    JobSpec spec = entry.spec;
    return entry.run.next(WORKER).toBuilder()
        .setContext(
            dev.baton.v1.ClusterContext.newBuilder()
                .setCluster("test")
                .setEpoch(WORKER)
                .setEntityType("job")
                .setEntityId(spec.getKey()))
        .setState(sidecar.state.value(stateKey(spec)))
        .setJob(
            JobContext.newBuilder()
                .setQueue(entry.job.getQueue())
                .setKey(spec.getKey())
                .setPriority(spec.getPriority())
                .putAllLabels(spec.getLabelsMap())
                .setBatch(spec.getBatch())
                .setSubmittedAt(Times.message(now))
                .setRescues(entry.job.getRescues()))
        .build();
  }

  private synchronized void queued(Entry entry) {
    if (entry.job.getState() == RunState.RUN_STATE_RUNNING) {
      entry.job.setState(RunState.RUN_STATE_QUEUED).setRescues(entry.job.getRescues() + 1);
    }
  }

  private void ended(Entry entry, ExecuteResponse response) {
    synchronized (this) {
      switch (response.getOutcomeCase()) {
        case FAILED -> failed(entry, response.getFailed());
        case SNOOZED -> snoozed(entry, response.getSnoozed());
        case SKIPPED -> end(entry, Outcome.OUTCOME_SKIPPED);
        default -> {
          entry.job.setResult(response.getSucceeded().getResult());
          if (response.getSucceeded().hasState()) {
            sidecar.state.write(stateKey(entry.spec), response.getSucceeded().getState());
          }
          response.getSucceeded().getJobsList().forEach(this::submit);
          end(entry, Outcome.OUTCOME_SUCCEEDED);
        }
      }
    }
    start();
  }

  private void failed(Entry entry, Failed failed) {
    int attempts = entry.spec.getRetry().getAttempts();
    entry.job.setFailures(entry.job.getFailures() + 1).setError(failed.getMessage());
    if (failed.getRetryable() && entry.job.getFailures() < (attempts == 0 ? 3 : attempts)) {
      entry.job.setState(RunState.RUN_STATE_WAITING);
      entry.dueAt = now.plusSeconds(1);
    } else {
      end(entry, Outcome.OUTCOME_FAILED);
    }
  }

  private void snoozed(Entry entry, Snoozed snoozed) {
    entry.job.setState(RunState.RUN_STATE_WAITING);
    entry.dueAt =
        snoozed.hasAt()
            ? Times.instant(snoozed.getAt())
            : now.plus(Times.duration(snoozed.getAfter()));
    if (snoozed.hasState()) {
      sidecar.state.write(stateKey(entry.spec), snoozed.getState());
    }
  }

  synchronized void end(Entry entry, Outcome outcome) {
    entry.job.setState(RunState.RUN_STATE_ENDED).setOutcome(outcome);
    entry.ended.complete(null);
  }

  /** Ends it, as an operator would; a running one is told to stop. */
  synchronized boolean cancel(Entry entry) {
    boolean runs = entry.job.getState() == RunState.RUN_STATE_RUNNING;
    if (runs) {
      sidecar.stream.newest().cancel(entry.running);
    }
    end(entry, Outcome.OUTCOME_SKIPPED);
    return runs;
  }

  /** A dead letter, queued again. */
  synchronized void replay(Entry entry) {
    entry.job.setState(RunState.RUN_STATE_QUEUED).setFailures(0).clearOutcome();
  }

  synchronized Job job(long id) {
    Entry entry = all.get(id);
    return entry == null ? null : entry.job.build();
  }

  synchronized List<Entry> dead() {
    return all.values().stream()
        .filter(it -> it.job.getOutcome() == Outcome.OUTCOME_FAILED)
        .toList();
  }

  private static String stateKey(JobSpec spec) {
    return "job-state:" + spec.getName() + "/" + spec.getKey();
  }
}
