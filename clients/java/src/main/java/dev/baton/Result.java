package dev.baton;

import java.util.List;

/**
 * A success.
 *
 * @param value kept with the run: bytes, or anything as JSON; null: nothing
 * @param state the new owned state, committed together with the outcome; null: as it is
 * @param jobs submitted together with the outcome, at most 100
 */
public record Result(Object value, Object state, List<NewJob> jobs) {
  private static final Result DONE = new Result(null, null);

  /** Keeps its own copy of the jobs. */
  public Result {
    jobs = List.copyOf(jobs);
  }

  /** Without follow-up jobs. */
  public Result(Object value, Object state) {
    this(value, state, List.of());
  }

  /** Succeeded, with nothing to keep. */
  public static Result done() {
    return DONE;
  }

  /** Succeeded, with a result to keep. */
  public static Result of(Object value) {
    return new Result(value, null);
  }

  /** The same, and the owned state becomes this in the same transaction. */
  public Result withState(Object newState) {
    return new Result(value, newState, jobs);
  }

  /** The same, and these jobs are submitted in the same transaction. */
  public Result withJobs(NewJob... followUps) {
    return withJobs(List.of(followUps));
  }

  /** As above. */
  public Result withJobs(List<NewJob> followUps) {
    return new Result(value, state, followUps);
  }
}
