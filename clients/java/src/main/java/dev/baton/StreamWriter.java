package dev.baton;

import com.google.protobuf.CodedOutputStream;
import dev.baton.v1.AttachRequest;
import dev.baton.v1.LeadershipAnswer;
import dev.baton.v1.Pong;
import dev.baton.v1.RunAnswer;
import dev.baton.v1.StreamCheckpoint;
import dev.baton.v1.StreamHeartbeat;
import dev.baton.v1.Welcome;
import io.grpc.stub.ClientCallStreamObserver;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Writes the messages of one stream to the sidecar.
 *
 * <p>Pongs, answers to leadership and the capacity are sent at once. Answers, checkpoints and
 * heartbeats share messages under load: an entry is sent at once if it is the only work, or if
 * nothing was sent in the last millisecond; otherwise it waits for the end of that millisecond.
 * While gRPC is not ready, entries wait until it is. Open runs bound their number.
 */
final class StreamWriter {
  static final int ENTRIES_MAX = 512;
  static final int BYTES_MAX = 1 << 20;
  private static final int MESSAGE_MAX = 4 << 20;
  private static final int ENTRY_OVERHEAD = 1 + CodedOutputStream.computeUInt32SizeNoTag(-1);
  private static final long GATHER_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final ScheduledExecutorService timer;
  private final Queue<Entry> entries = new ArrayDeque<>();
  private ClientCallStreamObserver<AttachRequest> call;
  private int messageMax = MESSAGE_MAX;
  private int entriesMax = ENTRIES_MAX;
  private long sentAt = System.nanoTime() - GATHER_NANOS;
  private boolean gathers;
  private boolean closed;

  StreamWriter(ScheduledExecutorService timer) {
    this.timer = timer;
  }

  /** A part of a message, with its size in it. */
  private record Entry(int bytes, Consumer<AttachRequest.Builder> part) {}

  /** Starts with the first message, which is sent before any other. */
  synchronized void open(ClientCallStreamObserver<AttachRequest> opened, AttachRequest first) {
    call = opened;
    send(first);
  }

  /** What the sidecar reads. */
  synchronized void limit(Welcome welcome) {
    if (welcome.getMessageBytesMax() > 0) {
      messageMax = welcome.getMessageBytesMax();
    }
    if (welcome.getFrameEntriesMax() > 0) {
      entriesMax = Math.min(ENTRIES_MAX, welcome.getFrameEntriesMax());
    }
  }

  /** The largest entry that fits into a message. */
  synchronized int entryBytesMax() {
    return messageMax - ENTRY_OVERHEAD;
  }

  void pong(long number) {
    Pong pong = Pong.newBuilder().setNumber(number).build();
    send(AttachRequest.newBuilder().setPong(pong).build());
  }

  void leadership(LeadershipAnswer answer) {
    send(AttachRequest.newBuilder().addLeadership(answer).build());
  }

  void capacity(int runs) {
    send(AttachRequest.newBuilder().setCapacity(runs).build());
  }

  /** An answer; `alone`: no other run is open. */
  void answer(RunAnswer answer, boolean alone) {
    add(new Entry(answer.getSerializedSize(), message -> message.addAnswers(answer)), alone);
  }

  void checkpoint(StreamCheckpoint step, boolean alone) {
    add(new Entry(step.getSerializedSize(), message -> message.addCheckpoints(step)), alone);
  }

  void heartbeat(StreamHeartbeat sign, boolean alone) {
    add(new Entry(sign.getSerializedSize(), message -> message.addHeartbeats(sign)), alone);
  }

  /** Sends what has gathered, as far as gRPC is ready for it. */
  synchronized void flush() {
    while (!closed && !entries.isEmpty() && call != null && call.isReady()) {
      send(gathered());
    }
  }

  /** Sends everything that waits, ready or not, and ends the stream from this side. */
  synchronized void finish() {
    while (!closed && !entries.isEmpty()) {
      send(gathered());
    }
    if (!closed && call != null) {
      closed = true;
      call.onCompleted();
    }
  }

  /** The stream is over; what was not sent is lost, as are the runs that it belongs to. */
  synchronized void close() {
    closed = true;
    entries.clear();
  }

  private synchronized void add(Entry entry, boolean alone) {
    if (closed) {
      return;
    }
    entries.add(entry);
    long wait = sentAt + GATHER_NANOS - System.nanoTime();
    if (alone || wait <= 0 || entries.size() >= entriesMax) {
      flush();
    } else if (!gathers) {
      gathers = true;
      flushAfter(wait);
    }
  }

  private void flushAfter(long nanos) {
    try {
      timer.schedule(this::endGathering, nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException stopped) {
      endGathering();
    }
  }

  private synchronized void endGathering() {
    gathers = false;
    flush();
  }

  /** The next message: at least one entry, and no more than fit. */
  private AttachRequest gathered() {
    AttachRequest.Builder message = AttachRequest.newBuilder();
    int bytesMax = Math.min(BYTES_MAX, messageMax);
    int bytes = 0;
    for (int count = 0; count < entriesMax && !entries.isEmpty(); count++) {
      bytes += entries.element().bytes() + ENTRY_OVERHEAD;
      if (count > 0 && bytes > bytesMax) {
        break;
      }
      entries.remove().part().accept(message);
    }
    return message.build();
  }

  private synchronized void send(AttachRequest message) {
    if (closed || call == null) { // nothing comes before `hello`
      return;
    }
    sentAt = System.nanoTime();
    try {
      call.onNext(message);
    } catch (IllegalStateException ended) { // the call was cancelled meanwhile
      close();
    }
  }
}
