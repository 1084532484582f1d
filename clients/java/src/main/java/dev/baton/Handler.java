package dev.baton;

/**
 * Executes one attempt of one run of a schedule, singleton or job.
 *
 * <p>Returning means: succeeded. Throwing {@link Ending.Skip}, {@link Ending.Retry}, {@link
 * Ending.Fail} or {@link Ending.Snooze} says how else it ended; anything else thrown means: failed,
 * try again. Its thread is interrupted when it must stop.
 */
@FunctionalInterface
public interface Handler {
  /** Does the work; null means {@link Result#done}. */
  Result handle(Context context) throws Exception;
}
