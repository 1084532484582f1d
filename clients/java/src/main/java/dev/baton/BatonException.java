package dev.baton;

import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Every error of this package, in one tree. Each says whether asking again may help.
 *
 * <pre>
 * BatonException
 * ├── Unavailable              the sidecar or its Postgres is away         retry
 * ├── DeadlineExceeded         no answer in time; it may have happened     retry
 * ├── Cancelled                the calling thread was interrupted
 * ├── NotFound
 * ├── AlreadyExists            there is one, and it differs
 * ├── Conflict                 a lost compare-and-set: read again, then try again
 * ├── FailedPrecondition       the thing is in no state for this call
 * │   └── Fenced               this run's attempt or term is over: stop the work
 * ├── InvalidArgument          violations() names each wrong field
 * ├── OutOfRange               a watch asked for changes no longer known: after 0 again
 * ├── LimitExceeded            a documented limit
 * ├── Unauthenticated          the token is missing or wrong
 * ├── StateLoadFailed          retry
 * ├── StatePersistFailed       retry
 * ├── SchemaDecodeFailed
 * ├── HeartbeatFailed          retry
 * ├── LeaderHandoffFailed      retry
 * ├── DeferredFailed           what was awaited was failed, or has expired
 * ├── ClusterContextRequired   called outside a handler or hook
 * └── NotConnected             the app is not being served
 * </pre>
 */
public class BatonException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private final transient Failure failure;

  BatonException(Failure failure) {
    super(failure.message(), failure.cause());
    this.failure = failure;
  }

  BatonException(String message) {
    this(Failure.of(message));
  }

  /** A wrong field, and what is wrong with it. */
  public record Violation(String field, String problem) {}

  /** What is known of an error, as {@link Errors} read it from a gRPC status. */
  record Failure(
      String message,
      Status.Code code,
      String reason,
      Boolean retryable,
      Duration retryAfter,
      List<Violation> violations,
      Throwable cause) {
    static Failure of(String message) {
      return new Failure(message, null, "", null, null, List.of(), null);
    }
  }

  /** Whether asking again may help: as the sidecar said, else by the kind of the error. */
  public boolean retryable() {
    return failure.retryable() != null ? failure.retryable() : retryableByKind();
  }

  /** The typed reason that the sidecar gave; without one, the name of the class. */
  public String reason() {
    return failure.reason().isEmpty() ? getClass().getSimpleName() : failure.reason();
  }

  /** The gRPC code; empty if no call was made. */
  public Optional<Status.Code> code() {
    return Optional.ofNullable(failure.code());
  }

  /** When to ask again, if the sidecar said so. */
  public Optional<Duration> retryAfter() {
    return Optional.ofNullable(failure.retryAfter());
  }

  /** The fields that were refused. */
  public List<Violation> violations() {
    return failure.violations();
  }

  boolean retryableByKind() {
    return false;
  }

  /** An error after which asking again may help. */
  private abstract static class Passing extends BatonException {
    Passing(Failure failure) {
      super(failure);
    }

    @Override
    boolean retryableByKind() {
      return true;
    }
  }

  /** The sidecar or its database cannot be reached now. */
  public static final class Unavailable extends Passing {
    Unavailable(Failure failure) {
      super(failure);
    }
  }

  /** No answer came in time; whether the call took effect is not known. */
  public static final class DeadlineExceeded extends Passing {
    DeadlineExceeded(Failure failure) {
      super(failure);
    }
  }

  /** The thread was interrupted during the call; its interrupt flag is still set. */
  public static final class Cancelled extends BatonException {
    Cancelled(Failure failure) {
      super(failure);
    }
  }

  /** What was named does not exist. */
  public static final class NotFound extends BatonException {
    NotFound(Failure failure) {
      super(failure);
    }
  }

  /** There is one already, and it differs; it is left standing. */
  public static final class AlreadyExists extends BatonException {
    AlreadyExists(Failure failure) {
      super(failure);
    }
  }

  /** The entry has another version than expected; nothing was changed. */
  public static final class Conflict extends BatonException {
    Conflict(Failure failure) {
      super(failure);
    }
  }

  /** The thing exists but is in no state for this call. */
  public static class FailedPrecondition extends BatonException {
    FailedPrecondition(Failure failure) {
      super(failure);
    }
  }

  /** The attempt on whose behalf this was is no longer the live one: stop its work. */
  public static final class Fenced extends FailedPrecondition {
    Fenced(Failure failure) {
      super(failure);
    }
  }

  /** The sidecar refused what was sent; {@link #violations()} names the fields. */
  public static final class InvalidArgument extends BatonException {
    InvalidArgument(Failure failure) {
      super(failure);
    }
  }

  /** The changes asked for are no longer known: watch again, after version 0. */
  public static final class OutOfRange extends BatonException {
    OutOfRange(Failure failure) {
      super(failure);
    }
  }

  /** A documented limit was reached; the message names it. */
  public static final class LimitExceeded extends BatonException {
    LimitExceeded(Failure failure) {
      super(failure);
    }
  }

  /** The token for the sidecar is missing or wrong. */
  public static final class Unauthenticated extends BatonException {
    Unauthenticated(Failure failure) {
      super(failure);
    }
  }

  /** Stored state could not be read. */
  public static final class StateLoadFailed extends Passing {
    StateLoadFailed(Failure failure) {
      super(failure);
    }
  }

  /** State could not be written; nothing was acknowledged. */
  public static final class StatePersistFailed extends Passing {
    StatePersistFailed(Failure failure) {
      super(failure);
    }
  }

  /** Stored bytes do not fit the declared schema. */
  public static final class SchemaDecodeFailed extends BatonException {
    SchemaDecodeFailed(Failure failure) {
      super(failure);
    }
  }

  /** A heartbeat could not be written. */
  public static final class HeartbeatFailed extends Passing {
    HeartbeatFailed(Failure failure) {
      super(failure);
    }
  }

  /** Leadership could not be taken or given up as asked. */
  public static final class LeaderHandoffFailed extends Passing {
    LeaderHandoffFailed(Failure failure) {
      super(failure);
    }
  }

  /** The deferred was completed with an error, or has expired. */
  public static final class DeferredFailed extends BatonException {
    DeferredFailed(String message) {
      super(message);
    }
  }

  /** There is no cluster context here: call it below a handler or a hook. */
  public static final class ClusterContextRequired extends BatonException {
    ClusterContextRequired() {
      super("no cluster context: call this below a handler or a hook");
    }
  }

  /** There is no connection to the sidecar: the app is not being served. */
  public static final class NotConnected extends BatonException {
    NotConnected(String message) {
      super(message);
    }
  }
}
