package dev.baton;

import dev.baton.v1.Leader;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;

/** Renews the trust of terms by Leadership.Watch, for an app that the sidecar calls. */
final class TrustWatch {
  private static final System.Logger LOG = System.getLogger("baton");

  private final Sidecar sidecar;
  private final Clock clock;
  private final Executor threads;
  private final Map<Term, Watch<Leader>> watches = new ConcurrentHashMap<>();

  TrustWatch(Sidecar sidecar, Clock clock, Executor threads) {
    this.sidecar = sidecar;
    this.clock = clock;
    this.threads = threads;
  }

  void open(Term term) {
    threads.execute(() -> watch(term));
  }

  void close(Term term) {
    Watch<Leader> watch = watches.get(term);
    if (watch != null) {
      watch.close();
    }
  }

  /** Renews trust for as long as the term is open; a broken stream is opened again. */
  private void watch(Term term) {
    Backoff backoff = new Backoff(Duration.ofMillis(100), Duration.ofSeconds(1));
    Level level = Level.WARNING;
    while (!term.isClosed()) {
      try (Watch<Leader> watch = sidecar.leadership().watch(term.group)) {
        watches.put(term, watch);
        while (!term.isClosed() && watch.hasNext()) {
          long readAt = clock.earliest();
          term.hear(watch.next(), readAt);
          backoff.reset();
          level = Level.WARNING;
        }
      } catch (BatonException error) {
        LOG.log(level, "watching {0}: {1}: {2}", term.group, error.reason(), error.getMessage());
        level = Level.DEBUG; // once is enough until it works again
        if (!term.isClosed() && !Backoff.slept(backoff.next())) {
          break;
        }
      }
    }
    watches.remove(term);
  }
}
