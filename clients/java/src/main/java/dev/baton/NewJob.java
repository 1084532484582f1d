package dev.baton;

import dev.baton.v1.JobConflict;
import dev.baton.v1.JobPriority;
import dev.baton.v1.JobSpec;
import dev.baton.v1.JobUnique;
import java.time.Duration;
import java.time.Instant;

/**
 * A job to submit; also the defaults of all jobs of one name, given with their handler.
 *
 * <p>What is not set has the default of its queue: due now, priority normal, three attempts.
 */
public final class NewJob {
  private final JobSpec spec;

  private NewJob(JobSpec.Builder spec) {
    this.spec = spec.build();
  }

  /** For the handler of this name, without input. */
  public static NewJob named(String name) {
    return new NewJob(JobSpec.newBuilder().setName(name));
  }

  /** For the handler of this name, with an input: bytes, or anything as JSON. */
  public static NewJob named(String name, Object payload) {
    return named(name).withPayload(payload);
  }

  /** The input: bytes, or anything as JSON; at most 256 KiB. */
  public NewJob withPayload(Object payload) {
    return new NewJob(change().setPayload(Json.toBytes(payload)));
  }

  /** The content type of the payload. */
  public NewJob withContentType(String type) {
    return new NewJob(change().setContentType(type));
  }

  /** The queue, else {@code default}. */
  public NewJob withQueue(String name) {
    return new NewJob(change().setQueue(name));
  }

  /** How much it weighs against other jobs. */
  public NewJob withPriority(JobPriority priority) {
    return new NewJob(change().setPriority(priority));
  }

  /** Not started before this time. */
  public NewJob withDueAt(Instant time) {
    return new NewJob(change().setDueAt(Times.message(time)));
  }

  /** Not started before this time has passed. */
  public NewJob withDelay(Duration time) {
    return new NewJob(change().setDelay(Times.message(time)));
  }

  /** Skipped if it was not started by then. */
  public NewJob withExpiresAt(Instant time) {
    return new NewJob(change().setExpiresAt(Times.message(time)));
  }

  /** Jobs with the same name and key run one at a time, in order, and share state. */
  public NewJob withKey(String key) {
    return new NewJob(change().setKey(key));
  }

  /** While a job of this name and unique key is live, it stands for this one. */
  public NewJob withUnique(String key) {
    return withUnique(key, null, JobConflict.JOB_CONFLICT_EXISTING);
  }

  /** As above, also for this time after the earlier one was submitted; null: while it is live. */
  public NewJob withUnique(String key, Duration window, JobConflict onConflict) {
    JobUnique.Builder unique = JobUnique.newBuilder().setKey(key).setOnConflict(onConflict);
    if (window != null) {
      unique.setWindow(Times.message(window));
    }
    return new NewJob(change().setUnique(unique));
  }

  /** So many attempts in all; 1: no retry. */
  public NewJob withRetry(int attempts) {
    return new NewJob(change().setRetry(Policies.retry(attempts)));
  }

  /** As above, with the wait before the second attempt and the longest wait. */
  public NewJob withRetry(int attempts, Duration initial, Duration max) {
    return new NewJob(change().setRetry(Policies.retry(attempts, initial, max)));
  }

  /** Each attempt is cancelled after this time. */
  public NewJob withTimeout(Duration time) {
    return new NewJob(change().setTimeout(Times.message(time)));
  }

  /** A label to find it by; at most 16. */
  public NewJob withLabel(String name, String value) {
    return new NewJob(change().putLabels(name, value));
  }

  /** The jobs of one batch are counted together. */
  public NewJob withBatch(String name) {
    return new NewJob(change().setBatch(name));
  }

  JobSpec spec() {
    return spec;
  }

  private JobSpec.Builder change() {
    return spec.toBuilder();
  }
}
