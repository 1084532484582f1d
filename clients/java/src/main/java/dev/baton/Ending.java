package dev.baton;

import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Failed;
import dev.baton.v1.Skipped;
import java.time.Duration;

/** How a run ends other than by success; thrown by handlers, or by what they call. */
public abstract sealed class Ending extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final int CODE_MAX = 255;

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

  /**
   * The answer for anything that a handler threw: its type and its text, or its type only if the
   * text of errors may hold secrets. The whole of it is in the app's own log.
   */
  static ExecuteResponse response(Throwable thrown, boolean hidesText) {
    if (thrown instanceof Ending ending) {
      return ending.response();
    }
    String simple = thrown.getClass().getSimpleName();
    String name = simple.isEmpty() ? thrown.getClass().getName() : simple; // an anonymous class
    String text = hidesText ? null : thrown.getMessage();
    String message = hidesText ? "unhandled " + name : text == null ? name : name + ": " + text;
    Failed.Builder failed =
        Failed.newBuilder()
            .setMessage(Text.cut(message, Text.MESSAGE_MAX))
            .setCode(Text.cut(name, CODE_MAX))
            .setRetryable(true);
    return ExecuteResponse.newBuilder().setFailed(failed).build();
  }
}
