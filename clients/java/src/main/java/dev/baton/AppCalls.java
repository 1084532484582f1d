package dev.baton;

import dev.baton.v1.OnLoseLeadershipRequest;
import dev.baton.v1.RunKind;
import io.grpc.Status;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * What the sidecar asks of the app, whether it arrives by a call or over a stream.
 *
 * <p>Hooks and handlers run in threads of their own, never in those of gRPC.
 */
final class AppCalls {
  private static final System.Logger LOG = System.getLogger("baton");

  final Leading leading;
  final Handlers handlers;
  final Sidecar sidecar;
  final Threads threads;

  /** The jobs that run; they belong to no term. */
  final Attempts jobs = new Attempts();

  private final Answers answers;

  AppCalls(Sidecar sidecar, Leading leading, Handlers handlers, Threads threads, boolean hides) {
    this.sidecar = sidecar;
    this.leading = leading;
    this.handlers = handlers;
    this.threads = threads;
    this.answers = new Answers(handlers::withDefaults, hides);
  }

  Cluster.Scope scope(ClusterContext context, String traceparent) {
    sidecar.isOf(context.cluster());
    return new Cluster.Scope(context, sidecar, traceparent);
  }

  /** Opens the term and answers when its hook has ended; stopping `hook` interrupts it. */
  void become(
      Cluster.Scope scope, Long trustedUntil, Stoppable hook, Consumer<Status> answer) {
    if (leading.isStopping()) {
      answer.accept(Status.UNAVAILABLE.withDescription("the app is stopping"));
      return;
    }
    start(
        scope,
        () -> hook.run(() -> answer.accept(become(scope.context(), trustedUntil, hook))));
  }

  /** Ends the term, in this thread: from now on the app does not lead. */
  void lose(Cluster.Scope scope, OnLoseLeadershipRequest request, Consumer<Status> answer) {
    ClusterContext context = scope.context();
    Cluster.within(
        scope,
        () ->
            leading
                .lose(context, request.getReason(), context.epoch())
                .thenAccept(agreed -> answer.accept(agreed ? Status.OK : hookFailed(""))));
  }

  /** Starts the attempt; empty: it was refused, and the refusal is its answer. */
  Optional<Attempt> execute(Delivery delivery) {
    boolean isJob = delivery.request().getKind() == RunKind.RUN_KIND_JOB;
    ClusterContext context = delivery.scope().context();
    Optional<Term> term =
        isJob ? Optional.empty() : leading.term(context.group(), context.epoch());
    if (!isJob && term.isEmpty()) {
      return refuseTerm(delivery);
    }
    Optional<Handler> handler = handlers.find(delivery.request());
    if (handler.isEmpty()) {
      String name = delivery.request().getName();
      return refuse(delivery, Status.NOT_FOUND, "no handler for '" + name + "'");
    }
    Attempts owner = term.map(found -> found.attempts).orElse(jobs);
    Attempt attempt = new Attempt(delivery, owner, handler.get(), answers);
    if (!term.map(found -> found.begin(attempt)).orElseGet(() -> jobs.add(attempt))) {
      return refuseTerm(delivery);
    }
    limit(attempt, delivery);
    start(delivery.scope(), attempt::run);
    return Optional.of(attempt);
  }

  private Status become(ClusterContext context, Long trustedUntil, Stoppable hook) {
    try {
      leading.become(context, trustedUntil, hook);
      return Status.OK;
    } catch (Throwable error) {
      LOG.log(Level.ERROR, "the hook for becoming leader of " + context.group() + " failed", error);
      return hookFailed(": " + error.getClass().getSimpleName());
    }
  }

  private void limit(Attempt attempt, Delivery delivery) {
    if (!delivery.request().hasDeadline()) {
      return;
    }
    Instant deadline = Times.instant(delivery.request().getDeadline());
    Status late = Status.DEADLINE_EXCEEDED.withDescription("the attempt was not done in time");
    long nanos = Math.max(0, nanosBetween(Instant.now(), deadline));
    attempt.onEnd(
        threads.timer().schedule(() -> attempt.stop(late), nanos, TimeUnit.NANOSECONDS));
  }

  private static long nanosBetween(Instant from, Instant to) {
    Duration time = Duration.between(from, to);
    return time.toDays() > 3650 ? TimeUnit.DAYS.toNanos(3650) : time.toNanos();
  }

  /** Runs it in a thread for hooks and handlers, within the cluster context. */
  private void start(Cluster.Scope scope, Runnable work) {
    try {
      threads.handlers().execute(() -> Cluster.within(scope, work));
    } catch (RejectedExecutionException closed) {
      LOG.log(Level.DEBUG, "not started: the app is closed");
    }
  }

  private static Status hookFailed(String detail) {
    return Status.INTERNAL.withDescription("hook failed" + detail);
  }

  private static Optional<Attempt> refuseTerm(Delivery delivery) {
    String epoch = Long.toUnsignedString(delivery.scope().context().epoch());
    return refuse(delivery, Status.UNAVAILABLE, "not in term " + epoch);
  }

  private static Optional<Attempt> refuse(Delivery delivery, Status status, String message) {
    delivery.answer().status(status.withDescription(message));
    return Optional.empty();
  }
}
