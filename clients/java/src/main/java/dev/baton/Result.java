package dev.baton;

import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Succeeded;

/**
 * A success.
 *
 * @param value kept with the run: bytes, or anything as JSON; null: nothing
 * @param state the new owned state, committed together with the outcome; null: as it is
 */
public record Result(Object value, Object state) {
  private static final Result DONE = new Result(null, null);

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
    return new Result(value, newState);
  }

  /** The answer for what a handler returned. */
  static ExecuteResponse response(Result returned) {
    Result result = returned == null ? DONE : returned;
    Succeeded.Builder succeeded = Succeeded.newBuilder();
    if (result.value() != null) {
      succeeded.setResult(Json.toBytes(result.value()));
    }
    if (result.state() != null) {
      succeeded.setState(Json.toBytes(result.state()));
    }
    return ExecuteResponse.newBuilder().setSucceeded(succeeded).build();
  }
}
