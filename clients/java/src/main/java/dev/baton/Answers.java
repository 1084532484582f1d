package dev.baton;

import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Failed;
import dev.baton.v1.JobSpec;
import dev.baton.v1.RunKind;
import dev.baton.v1.Succeeded;
import java.util.function.UnaryOperator;

/**
 * Makes the answer to the sidecar of what a handler returned or threw.
 *
 * @param jobDefaults completes the follow-up jobs of a result
 * @param hidesErrors the text of an unexpected error may hold secrets: only its type is sent
 */
record Answers(UnaryOperator<JobSpec> jobDefaults, boolean hidesErrors) {
  private static final int CODE_MAX = 255;

  /** Of a success; null means {@link Result#done}. */
  ExecuteResponse of(Result returned) {
    Result result = returned == null ? Result.done() : returned;
    Succeeded.Builder succeeded = Succeeded.newBuilder();
    if (result.value() != null) {
      succeeded.setResult(Json.toBytes(result.value()));
    }
    if (result.state() != null) {
      succeeded.setState(Json.toBytes(result.state()));
    }
    result.jobs().forEach(job -> succeeded.addJobs(jobDefaults.apply(job.spec())));
    return ExecuteResponse.newBuilder().setSucceeded(succeeded).build();
  }

  /** Of an ending that the handler chose. */
  static ExecuteResponse of(Ending ending, RunKind kind) {
    if (ending instanceof Ending.Snooze && kind != RunKind.RUN_KIND_JOB) {
      return new Ending.Fail("only a job can be snoozed").code("SnoozeNotAllowed").response();
    }
    return ending.response();
  }

  /** Of an unexpected error: its type and text. The whole of it is in the app's own log. */
  ExecuteResponse of(Throwable thrown) {
    String simple = thrown.getClass().getSimpleName();
    String name = simple.isEmpty() ? thrown.getClass().getName() : simple; // an anonymous class
    Failed.Builder failed =
        Failed.newBuilder()
            .setMessage(Text.cut(describe(name, thrown.getMessage()), Text.MESSAGE_MAX))
            .setCode(Text.cut(name, CODE_MAX))
            .setRetryable(true);
    return ExecuteResponse.newBuilder().setFailed(failed).build();
  }

  private String describe(String name, String text) {
    if (hidesErrors) {
      return "unhandled " + name;
    }
    return text == null ? name : name + ": " + text;
  }
}
