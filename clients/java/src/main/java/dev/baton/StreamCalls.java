package dev.baton;

import dev.baton.v1.RunsCheckpointRequest;
import dev.baton.v1.RunsHeartbeatRequest;
import dev.baton.v1.Stored;
import dev.baton.v1.StreamCheckpoint;
import dev.baton.v1.StreamHeartbeat;
import io.grpc.Status;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;

/**
 * Stores checkpoints and heartbeats over a stream, with the errors of the calls that they replace.
 */
final class StreamCalls implements RunCalls {
  private final StreamWriter writer;
  private final BooleanSupplier isAlone;
  private final AtomicLong numbers = new AtomicLong();
  private final Map<Long, CompletableFuture<Status>> pending = new ConcurrentHashMap<>();
  private volatile boolean broken;

  StreamCalls(StreamWriter writer, BooleanSupplier isAlone) {
    this.writer = writer;
    this.isAlone = isAlone;
  }

  @Override
  public void checkpoint(RunsCheckpointRequest request) {
    StreamCheckpoint.Builder step =
        StreamCheckpoint.newBuilder()
            .setRun(request.getRun())
            .setStep(request.getStep())
            .setValue(request.getValue());
    if (step.setNumber(-1).build().getSerializedSize() > writer.entryBytesMax()) {
      String problem = "step '" + request.getStep() + "' is larger than a message may be";
      throw error(Status.RESOURCE_EXHAUSTED.withDescription(problem));
    }
    store(
        number -> writer.checkpoint(step.setNumber(number).build(), isAlone.getAsBoolean()));
  }

  @Override
  public void heartbeat(RunsHeartbeatRequest request) {
    StreamHeartbeat.Builder sign = StreamHeartbeat.newBuilder().setRun(request.getRun());
    if (request.hasProgress()) {
      sign.setProgress(request.getProgress());
    }
    if (request.hasMessage()) {
      sign.setMessage(request.getMessage());
    }
    store(number -> writer.heartbeat(sign.setNumber(number).build(), isAlone.getAsBoolean()));
  }

  /** The sidecar has answered. */
  void stored(Stored stored) {
    CompletableFuture<Status> waiting = pending.remove(stored.getNumber());
    if (waiting != null) {
      waiting.complete(
          stored.hasError()
              ? Status.fromCodeValue(stored.getError().getCode())
                  .withDescription(stored.getError().getMessage())
              : Status.OK);
    }
  }

  /** The stream is over: nothing is answered any more. */
  void fail() {
    broken = true;
    pending.values().forEach(waiting -> waiting.complete(streamBroken()));
  }

  /** As a call is, it is repeated while the sidecar is UNAVAILABLE; not on a broken stream. */
  private void store(LongConsumer send) {
    Connection.repeated(
        Connection.CALL_TIME,
        nanos -> {
          Status status = once(send, nanos);
          if (!status.isOk()) {
            throw error(status);
          }
          return status;
        },
        () -> !broken);
  }

  private Status once(LongConsumer send, long nanos) {
    long number = numbers.incrementAndGet();
    CompletableFuture<Status> answer = new CompletableFuture<>();
    pending.put(number, answer);
    try {
      send.accept(number);
      if (broken) { // after it was noted: fail() may have missed it
        return streamBroken();
      }
      return answer.get(nanos, TimeUnit.NANOSECONDS);
    } catch (TimeoutException late) {
      return Status.DEADLINE_EXCEEDED.withDescription("no answer over the stream");
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      return Status.CANCELLED.withDescription("interrupted");
    } catch (ExecutionException impossible) {
      throw new IllegalStateException(impossible);
    } finally {
      pending.remove(number);
    }
  }

  private static Status streamBroken() {
    return Status.UNAVAILABLE.withDescription("the stream to the sidecar broke");
  }

  private static BatonException error(Status status) {
    return Errors.of(status.asRuntimeException(), true);
  }
}
