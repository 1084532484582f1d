package dev.baton;

import java.util.concurrent.Executor;

/**
 * What is available to everything called below a handler or a hook, in its thread; outside it is a
 * {@link BatonException.ClusterContextRequired}.
 */
public final class Cluster {
  private static final ThreadLocal<Scope> SCOPE = new ThreadLocal<>();

  private Cluster() {}

  /** What a callback sets for the code below it; `traceparent` may be null. */
  record Scope(ClusterContext context, Sidecar sidecar, String traceparent) {}

  /** The context of the handler or hook above. */
  public static ClusterContext context() {
    return required().context();
  }

  /** A new cluster-wide id, from the sidecar of the handler or hook above. */
  public static long nextId() {
    return required().sidecar().nextId();
  }

  /** An executor whose tasks see the cluster context of whoever handed them in. */
  public static Executor carriedInto(Executor executor) {
    return task -> {
      Scope scope = SCOPE.get();
      executor.execute(() -> within(scope, task));
    };
  }

  /** Runs a task in a scope; null: outside any. */
  static void within(Scope scope, Runnable task) {
    Scope before = SCOPE.get();
    SCOPE.set(scope);
    try {
      task.run();
    } finally {
      if (before == null) {
        SCOPE.remove();
      } else {
        SCOPE.set(before);
      }
    }
  }

  /** The trace to go on with in calls to the sidecar; null: none. */
  static String traceparent() {
    Scope scope = SCOPE.get();
    return scope == null ? null : scope.traceparent();
  }

  private static Scope required() {
    Scope scope = SCOPE.get();
    if (scope == null) {
      throw new BatonException.ClusterContextRequired();
    }
    return scope;
  }
}
