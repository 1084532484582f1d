package dev.baton;

import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Failed;
import dev.baton.v1.RunAnswer;
import io.grpc.Status;

/** The answer of a run that arrived over a stream; none is sent for one that was cancelled. */
record StreamAnswer(OpenRuns.Run run, OpenRuns runs, StreamWriter writer)
    implements Delivery.Answer {
  @Override
  public void response(ExecuteResponse response) {
    RunAnswer answer = answer().setResponse(response).build();
    int bytes = answer.getSerializedSize();
    send(bytes <= writer.entryBytesMax() ? answer : tooLarge(bytes));
  }

  @Override
  public void status(Status status) {
    send(answer().setStatus(WorkStream.message(status)).build());
  }

  private void send(RunAnswer answer) {
    boolean alone = runs.isAlone(); // before it is closed: it is the one that may be open
    if (run.close()) {
      writer.answer(answer, alone);
    }
  }

  private RunAnswer tooLarge(int bytes) {
    String message =
        "the answer has " + bytes + " bytes; the sidecar reads " + writer.entryBytesMax();
    Failed failed = Failed.newBuilder().setCode("TOO_LARGE").setMessage(message).build();
    return answer().setResponse(ExecuteResponse.newBuilder().setFailed(failed)).build();
  }

  private RunAnswer.Builder answer() {
    return RunAnswer.newBuilder().setRunId(run.runId).setAttempt(run.attempt);
  }
}
