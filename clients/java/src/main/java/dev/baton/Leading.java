package dev.baton;

import dev.baton.v1.Leader;
import dev.baton.v1.LossReason;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A term from its beginning to its end: hooks, watch, attempts, and their cancellation.
 *
 * <p>Guarantees: the become hook of a term begins only when everything of the term before has
 * ended; what runs in a term is told to stop as soon as the term ends, which it does by itself when
 * its trust has run out; and what {@link #lose} gives is completed only when all of it has stopped,
 * because that lets the successor begin.
 */
final class Leading {
  private static final System.Logger LOG = System.getLogger("baton");
  private static final long CHECK_MIN_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long CHECK_MAX_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  final Terms terms;
  final Clock clock;
  private final Sidecar sidecar;
  private final Hooks hooks;
  private final Threads threads;
  private final TrustWatch watch; // null: the stream renews trust
  private final Map<String, ReentrantLock> locks = new ConcurrentHashMap<>();
  private final Map<String, CompletableFuture<Boolean>> endings = new ConcurrentHashMap<>();
  private final Set<Term> live = new HashSet<>(); // open, or being ended; guarded by itself
  private volatile boolean stopping;

  Leading(
      Sidecar sidecar,
      Hooks hooks,
      Clock clock,
      Threads threads,
      boolean watchesTrust) {
    this.sidecar = sidecar;
    this.hooks = hooks;
    this.clock = clock;
    this.threads = threads;
    watch = watchesTrust ? new TrustWatch(sidecar, clock, threads.handlers()) : null;
    terms = new Terms(clock);
  }

  /** From now on no term is taken up. */
  void stopping() {
    stopping = true;
  }

  boolean isStopping() {
    return stopping;
  }

  /** The open term with that epoch. */
  Optional<Term> term(String group, long epoch) {
    return terms.get(group).filter(term -> term.epoch == epoch && term.trustLeft() > 0);
  }

  /** Opens the term, unless it is old news; returns when the hook, run by `opening`, is through. */
  void become(ClusterContext context, Long trustedUntil, Stoppable opening) throws Exception {
    String group = context.group();
    if (!terms.isNews(group, context.epoch())) {
      return;
    }
    // The end of an older term may never have been told; one just told may still be going on.
    lose(context, LossReason.LOSS_REASON_UNSPECIFIED, context.epoch() - 1).get();
    ReentrantLock lock = lock(group);
    lock.lockInterruptibly();
    try {
      Optional<Term> term;
      synchronized (endings) {
        term = terms.open(context, trustedUntil);
        term.ifPresent(opened -> endings.remove(group));
      }
      if (term.isPresent()) {
        takeUp(term.get(), opening);
      }
    } finally {
      lock.unlock();
    }
  }

  /** Ends the term at once; completed when all has stopped, with whether the hook agreed. */
  CompletableFuture<Boolean> lose(ClusterContext context, LossReason reason, long epoch) {
    String group = context.group();
    CompletableFuture<Boolean> ending;
    synchronized (endings) { // a term that is closed has an ending, for whoever asks next
      terms
          .close(group, epoch)
          .ifPresent(term -> endings.put(group, ending(term, context, reason)));
      ending = endings.get(group);
    }
    if (ending == null || epoch == 0 && ending.isDone()) {
      // A sidecar that makes contact must not be told of an old failure for ever.
      return CompletableFuture.completedFuture(true);
    }
    return ending;
  }

  /** Ends every term because the app stops; waits for it no longer than `time`. */
  void endAll(Duration time) throws InterruptedException {
    stopping();
    for (Term term : terms.all()) {
      lose(term.context, LossReason.LOSS_REASON_SHUTDOWN, term.epoch);
    }
    CompletableFuture<?>[] pending = endings.values().toArray(CompletableFuture<?>[]::new);
    try {
      CompletableFuture.allOf(pending).get(time.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException late) {
      LOG.log(Level.WARNING, "handlers have not stopped within {0}", time);
    } catch (ExecutionException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** Waits until no term is open, and none is being ended. */
  void awaitIdle() throws InterruptedException {
    synchronized (live) {
      while (!live.isEmpty()) {
        live.wait();
      }
    }
  }

  /** The groups that are led, or being handed over. */
  List<String> groups() {
    synchronized (live) {
      return live.stream().map(term -> term.group).toList();
    }
  }

  private void takeUp(Term term, Stoppable opening) throws Exception {
    synchronized (live) {
      live.add(term);
    }
    if (watch != null) {
      watch.open(term);
    }
    term.opens(opening);
    enforce(term, false);
    LOG.log(Level.INFO, () -> "leading " + describe(term));
    try {
      Hooks.Become hook = hooks.become.get(term.group);
      if (hook != null) {
        hook.became(term.context);
      }
    } catch (Throwable error) {
      term.refuse();
      closeWatch(term);
      throw error;
    }
  }

  private CompletableFuture<Boolean> ending(
      Term term, ClusterContext context, LossReason reason) {
    closeWatch(term);
    term.stopWork();
    LOG.log(Level.INFO, () -> "no longer leading " + describe(term) + ": " + reason);
    ClusterContext lost = context.lost(term.epoch);
    Cluster.Scope scope = new Cluster.Scope(lost, sidecar, Cluster.traceparent());
    return CompletableFuture.supplyAsync(
        () -> end(term, lost, reason),
        task -> threads.handlers().execute(() -> Cluster.within(scope, task)));
  }

  private boolean end(Term term, ClusterContext context, LossReason reason) {
    ReentrantLock lock = lock(term.group);
    lock.lock(); // a become hook may still be unwinding
    try {
      term.attempts.await();
      Hooks.Lose hook = hooks.lose.get(term.group);
      if (hook != null) {
        hook.lost(context, reason);
      }
      return true;
    } catch (Throwable error) {
      LOG.log(Level.ERROR, () -> "the hook for losing " + describe(term) + " failed", error);
      return false;
    } finally {
      lock.unlock();
      synchronized (live) {
        live.remove(term);
        live.notifyAll();
      }
    }
  }

  private void closeWatch(Term term) {
    if (watch != null) {
      watch.close(term);
    }
  }

  /**
   * Ends the term when its trust was not renewed in time. It must be found out twice: a process
   * that was frozen finds the timer before the renewal that waits in the socket.
   */
  private void enforce(Term term, boolean ranOutBefore) {
    long left = term.trustLeft();
    boolean ranOut = left <= 0;
    if (ranOut && ranOutBefore && !term.isClosed()) {
      expire(term);
    }
    if (!term.isClosed() && !threads.timer().isShutdown()) {
      long pause = Math.min(Math.max(left, CHECK_MIN_NANOS), CHECK_MAX_NANOS);
      threads.timer().schedule(() -> enforce(term, ranOut), pause, TimeUnit.NANOSECONDS);
    }
  }

  private void expire(Term term) {
    LOG.log(Level.WARNING, () -> "trust was not renewed in time in " + describe(term));
    lose(term.context, LossReason.LOSS_REASON_LEASE_LOST, term.epoch);
    threads.handlers().execute(() -> resignIfStillLed(term));
  }

  /** A sidecar that did renew the trust, of an app that stood still, must not wait for this app. */
  private void resignIfStillLed(Term term) {
    try {
      Leader leader = sidecar.leadership().get(term.group);
      if (leader.getIsLeader() && leader.getEpoch() == term.epoch) {
        sidecar.leadership().resign(term.group);
      }
    } catch (BatonException error) { // frozen or gone: its lease ends too
      LOG.log(Level.DEBUG, "resigning {0}: {1}", term.group, error.getMessage());
    }
  }

  private ReentrantLock lock(String group) {
    return locks.computeIfAbsent(group, unused -> new ReentrantLock());
  }

  private static String describe(Term term) {
    return term.group + ", epoch " + Long.toUnsignedString(term.epoch);
  }
}
