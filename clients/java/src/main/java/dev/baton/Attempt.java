package dev.baton;

import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.lang.System.Logger.Level;

/** One attempt of one run in its thread, from the handler's call to the answer. */
final class Attempt {
  private static final System.Logger LOG = System.getLogger("baton");

  private final Term term;
  private final Handler handler;
  private final Context context;
  private final StreamObserver<ExecuteResponse> answer;
  private final Stoppable work = new Stoppable();

  Attempt(
      ExecuteRequest request,
      Term term,
      Handler handler,
      Sidecar sidecar,
      StreamObserver<ExecuteResponse> answer) {
    this.term = term;
    this.handler = handler;
    this.answer = answer;
    context = new Context(request, term, sidecar, work);
  }

  /** Tells the handler to stop: its term is over, or its call was cancelled. */
  void stop() {
    work.stop();
  }

  /** Calls the handler and answers; the attempt counts as running until the handler has ended. */
  void run() {
    ExecuteResponse[] response = new ExecuteResponse[1];
    try {
      work.run(() -> response[0] = work.isStopped() ? null : handled());
    } finally {
      term.ended(this);
    }
    if (response[0] == null) {
      String over = "term " + Long.toUnsignedString(term.epoch) + " is over";
      answer.onError(Status.UNAVAILABLE.withDescription(over).asRuntimeException());
    } else {
      answer.onNext(response[0]);
      answer.onCompleted();
    }
  }

  /** What the handler answers; null if it was stopped, in whatever words it said so. */
  private ExecuteResponse handled() {
    try {
      return Result.response(handler.handle(context));
    } catch (Ending ending) {
      return ending.response();
    } catch (Throwable error) { // also an Error: the sidecar must hear of it
      if (work.isStopped()) {
        LOG.log(Level.DEBUG, () -> describe("was stopped"), error);
        return null;
      }
      LOG.log(Level.ERROR, () -> describe("failed"), error);
      return Ending.response(error);
    }
  }

  private String describe(String what) {
    String run = Long.toUnsignedString(context.runId());
    return "run " + run + " of " + context.name() + " " + what;
  }
}
