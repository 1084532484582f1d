package dev.baton;

import dev.baton.v1.ExecuteResponse;
import io.grpc.Status;
import java.lang.System.Logger.Level;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;

/** One attempt of one run in its thread, from the handler's call to the answer. */
final class Attempt {
  private static final System.Logger LOG = System.getLogger("baton");

  private final Attempts owner;
  private final Handler handler;
  private final Context context;
  private final Delivery.Answer answer;
  private final Answers answers;
  private final Stoppable work = new Stoppable();
  private final AtomicReference<Status> stopReason = new AtomicReference<>();
  private volatile Future<?> deadline;

  Attempt(Delivery delivery, Attempts owner, Handler handler, Answers answers) {
    this.owner = owner;
    this.handler = handler;
    this.answer = delivery.answer();
    this.answers = answers;
    context = new Context(delivery, owner.draining, work);
  }

  /** Stops the handler; the first reason is the answer, unless the handler gives one itself. */
  void stop(Status reason) {
    stopReason.compareAndSet(null, reason);
    work.stop();
  }

  /** What is cancelled when the attempt has ended; set before it runs. */
  void onEnd(Future<?> timer) {
    deadline = timer;
  }

  /** Calls the handler and answers; the attempt counts as running until the handler has ended. */
  void run() {
    ExecuteResponse[] response = new ExecuteResponse[1];
    try {
      work.run(() -> response[0] = work.isStopped() ? null : handled());
    } finally {
      if (deadline != null) {
        deadline.cancel(false);
      }
      owner.ended(this);
    }
    if (response[0] == null) {
      answer.status(stopReason.get());
    } else {
      answer.response(response[0]);
    }
  }

  /** What the handler answers; null if it was stopped, in whatever words it said so. */
  private ExecuteResponse handled() {
    try {
      return answers.of(handler.handle(context));
    } catch (Ending ending) {
      return Answers.of(ending, context.kind());
    } catch (Throwable error) { // also an Error: the sidecar must hear of it
      if (work.isStopped()) {
        LOG.log(Level.DEBUG, () -> describe("was stopped"), error);
        return null;
      }
      LOG.log(Level.ERROR, () -> describe("failed"), error);
      return answers.of(error);
    }
  }

  private String describe(String what) {
    String run = Long.toUnsignedString(context.runId());
    return "run " + run + " of " + context.name() + " " + what;
  }
}
