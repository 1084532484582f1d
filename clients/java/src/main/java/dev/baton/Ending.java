package dev.baton;

import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Failed;
import dev.baton.v1.Skipped;
import dev.baton.v1.Snoozed;
import java.time.Duration;
import java.time.Instant;

/** How a run ends other than by success; thrown by handlers, or by what they call. */
public abstract sealed class Ending extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private Ending(String message) {
    super(message == null ? "" : message); // as getMessage() of many an exception is
  }

  abstract ExecuteResponse response();

  /** The app declines this run: no error, no retry. */
  public static final class Skip extends Ending {
    /** Declines, for this reason. */
    public Skip(String reason) {
      super(reason);
    }

    @Override
    ExecuteResponse response() {
      Skipped skipped = Skipped.newBuilder().setReason(getMessage()).build();
      return ExecuteResponse.newBuilder().setSkipped(skipped).build();
    }
  }

  /** This attempt failed; another may do better. */
  public static final class Retry extends Ending {
    private final transient Failed.Builder failed = Failed.newBuilder().setRetryable(true);

    /** Failed with this message, for a person. */
    public Retry(String message) {
      super(message);
      failed.setMessage(getMessage());
    }

    /** Try again no earlier than this from now. */
    public Retry after(Duration time) {
      failed.setRetryAfter(Times.message(time));
      return this;
    }

    /** A short code, for programs. */
    public Retry code(String code) {
      failed.setCode(code);
      return this;
    }

    /** The new owned state, although the attempt failed. */
    public Retry state(Object state) {
      failed.setState(Json.toBytes(state));
      return this;
    }

    @Override
    ExecuteResponse response() {
      return ExecuteResponse.newBuilder().setFailed(failed).build();
    }
  }

  /** This run failed for good. */
  public static final class Fail extends Ending {
    private final transient Failed.Builder failed = Failed.newBuilder();

    /** Failed with this message, for a person. */
    public Fail(String message) {
      super(message);
      failed.setMessage(getMessage());
    }

    /** A short code, for programs. */
    public Fail code(String code) {
      failed.setCode(code);
      return this;
    }

    /** The new owned state, although the run failed. */
    public Fail state(Object state) {
      failed.setState(Json.toBytes(state));
      return this;
    }

    @Override
    ExecuteResponse response() {
      return ExecuteResponse.newBuilder().setFailed(failed).build();
    }
  }

  /** Only of a job: deliver it again later. It uses no retry, and no slot meanwhile. */
  public static final class Snooze extends Ending {
    private final transient Snoozed.Builder snoozed = Snoozed.newBuilder();

    /** After this time has passed. */
    public Snooze(Duration after) {
      super("snoozed for " + after);
      snoozed.setAfter(Times.message(after));
    }

    /** At this time. */
    public Snooze(Instant until) {
      super("snoozed until " + until);
      snoozed.setAt(Times.message(until));
    }

    /** The new owned state of a job with a key. */
    public Snooze state(Object state) {
      snoozed.setState(Json.toBytes(state));
      return this;
    }

    @Override
    ExecuteResponse response() {
      return ExecuteResponse.newBuilder().setSnoozed(snoozed).build();
    }
  }
}
