package dev.baton;

import dev.baton.v1.LossReason;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What an app does when it becomes leader of a group, and when it no longer is. */
public final class Hooks {
  final Map<String, Become> become = new ConcurrentHashMap<>();
  final Map<String, Lose> lose = new ConcurrentHashMap<>();

  Hooks() {}

  /** Called before the first run of a term. */
  @FunctionalInterface
  public interface Become {
    /** Makes ready for work; whatever it throws refuses the term. */
    void became(ClusterContext context) throws Exception;
  }

  /** Called when a term is over and everything that ran in it has stopped. */
  @FunctionalInterface
  public interface Lose {
    /** Stops acting as leader. */
    void lost(ClusterContext context, LossReason reason) throws Exception;
  }
}
