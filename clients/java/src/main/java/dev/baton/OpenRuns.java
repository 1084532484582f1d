package dev.baton;

import dev.baton.v1.RunCancel;
import io.grpc.Status;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** The attempts of one stream that have not been answered yet. */
final class OpenRuns {
  private final Map<Key, Run> open = new ConcurrentHashMap<>();
  private final AtomicInteger counted = new AtomicInteger();

  private record Key(long runId, int attempt) {}

  /** One attempt, from its delivery to its answer; `counts`: not that of a singleton. */
  final class Run {
    final long runId;
    final int attempt;
    private final boolean counts;
    private final CompletableFuture<Attempt> begun = new CompletableFuture<>();

    private Run(Key key, boolean counts) {
      runId = key.runId();
      attempt = key.attempt();
      this.counts = counts;
    }

    void began(Attempt started) {
      begun.complete(started);
    }

    /** Closes it; false: it was cancelled, so no answer is expected. */
    boolean close() {
      boolean closed = open.remove(new Key(runId, attempt), this);
      if (closed && counts) {
        counted.decrementAndGet();
      }
      return closed;
    }

    private void stop(Status reason) {
      if (close()) {
        begun.thenAccept(running -> running.stop(reason));
      }
    }
  }

  Run open(long runId, int attempt, boolean counts) {
    Key key = new Key(runId, attempt);
    Run run = new Run(key, counts);
    if (counts) {
      counted.incrementAndGet();
    }
    Run before = open.put(key, run);
    if (before != null && before.counts) { // never sent twice; but the count must stay right
      counted.decrementAndGet();
    }
    return run;
  }

  /** Whether at most one run is open, singletons aside: then nothing is worth waiting for. */
  boolean isAlone() {
    return counted.get() <= 1;
  }

  void cancel(RunCancel cancel) {
    Run run = open.get(new Key(cancel.getRunId(), cancel.getAttempt()));
    if (run != null) {
      run.stop(Status.CANCELLED.withDescription(cancel.getReason()));
    }
  }

  /** Stops everything: the stream is over. */
  void stop() {
    Status broken = Status.UNAVAILABLE.withDescription("the stream to the sidecar broke");
    open.values().forEach(run -> run.stop(broken));
  }
}
