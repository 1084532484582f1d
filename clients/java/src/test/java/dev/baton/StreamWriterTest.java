package dev.baton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.baton.v1.AttachRequest;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.RunAnswer;
import dev.baton.v1.Succeeded;
import dev.baton.v1.Welcome;
import io.grpc.stub.ClientCallStreamObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What shares a message, and when it leaves; with a call and a timer of our own. */
class StreamWriterTest {
  private final ManualCall call = new ManualCall();
  private final ManualTimer timer = new ManualTimer();
  private final StreamWriter writer = new StreamWriter(timer);

  /** Notes what is sent. */
  private static final class ManualCall extends ClientCallStreamObserver<AttachRequest> {
    final List<AttachRequest> sent = new ArrayList<>();
    boolean ready = true;
    boolean completed;

    @Override
    public void onNext(AttachRequest message) {
      sent.add(message);
    }

    @Override
    public boolean isReady() {
      return ready;
    }

    @Override
    public void onCompleted() {
      completed = true;
    }

    @Override
    public void cancel(String message, Throwable cause) {}

    @Override
    public void setOnReadyHandler(Runnable handler) {}

    @Override
    public void request(int count) {}

    @Override
    public void setMessageCompression(boolean enable) {}

    @Override
    public void disableAutoInboundFlowControl() {}

    @Override
    public void onError(Throwable error) {}
  }

  /** Runs what was scheduled when the test says so. */
  private static final class ManualTimer extends ScheduledThreadPoolExecutor {
    final List<Runnable> tasks = new ArrayList<>();

    ManualTimer() {
      super(0);
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, long delay, TimeUnit unit) {
      assertTrue(unit.toNanos(delay) <= 1_000_000);
      tasks.add(task);
      return null;
    }

    @Override
    public <V> ScheduledFuture<V> schedule(Callable<V> task, long delay, TimeUnit unit) {
      throw new UnsupportedOperationException();
    }
  }

  @BeforeEach
  void open() {
    writer.open(call, AttachRequest.getDefaultInstance());
    call.sent.clear();
  }

  @AfterEach
  void close() {
    timer.shutdownNow();
  }

  private static RunAnswer answer(long run, int bytes) {
    ByteString value = ByteString.copyFrom(new byte[bytes]);
    Succeeded result = Succeeded.newBuilder().setResult(value).build();
    ExecuteResponse response = ExecuteResponse.newBuilder().setSucceeded(result).build();
    return RunAnswer.newBuilder().setRunId(run).setResponse(response).build();
  }

  private List<Integer> counts() {
    return call.sent.stream().map(AttachRequest::getAnswersCount).toList();
  }

  /** The only answer waits for nothing, however soon it follows another. */
  @Test
  void aLoneAnswerLeavesAtOnce() {
    for (int run = 0; run < 100; run++) {
      writer.answer(answer(run, 1), true);
      assertEquals(run + 1, call.sent.size());
    }
    assertTrue(timer.tasks.isEmpty());
  }

  /** Others wait for the end of the millisecond, and share its message. */
  @Test
  void answersUnderLoadShareAMessage() {
    int run = 0;
    while (timer.tasks.isEmpty()) { // a slow machine may take longer than that millisecond
      writer.answer(answer(run++, 1), false);
    }
    int sent = call.sent.size();
    writer.answer(answer(run++, 1), false);
    timer.tasks.remove(0).run();
    assertEquals(sent + 1, call.sent.size());
    assertEquals(2, call.sent.get(sent).getAnswersCount());
  }

  /** While gRPC is not ready, answers gather: at most 512 and 1 MiB to a message. */
  @Test
  void messagesHaveLimits() {
    call.ready = false;
    for (int run = 0; run < 600; run++) {
      writer.answer(answer(run, 1), true);
    }
    assertEquals(List.of(), counts());
    call.ready = true;
    writer.flush();
    assertEquals(List.of(512, 88), counts());
    call.sent.clear();
    call.ready = false;
    for (int run = 0; run < 5; run++) {
      writer.answer(answer(run, 400_000), true);
    }
    call.ready = true;
    writer.flush();
    assertEquals(List.of(2, 2, 1), counts());
  }

  /** What the sidecar says that it reads is what it gets. */
  @Test
  void theWelcomeLowersTheLimits() {
    writer.limit(Welcome.newBuilder().setMessageBytesMax(1000).setFrameEntriesMax(10).build());
    call.ready = false;
    for (int run = 0; run < 25; run++) {
      writer.answer(answer(run, 1), true);
    }
    for (int run = 0; run < 3; run++) {
      writer.answer(answer(run, 500), true);
    }
    call.ready = true;
    writer.flush();
    assertEquals(List.of(10, 10, 6, 1, 1), counts());
    assertTrue(call.sent.stream().allMatch(it -> it.getSerializedSize() <= 1000));
  }

  /** Pongs, leadership and capacity never wait behind answers. */
  @Test
  void urgentMessagesDoNotWait() {
    call.ready = false;
    writer.answer(answer(1, 1), true);
    writer.pong(7);
    writer.capacity(0);
    assertEquals(2, call.sent.size());
    assertEquals(7, call.sent.get(0).getPong().getNumber());
    assertTrue(call.sent.get(1).hasCapacity());
  }

  /** Whoever leaves says first what there is to say. */
  @Test
  void theEndFlushesEverything() {
    call.ready = false;
    writer.answer(answer(1, 1), true);
    writer.finish();
    writer.answer(answer(2, 1), true);
    writer.finish();
    assertEquals(List.of(1), counts());
    assertTrue(call.completed);
  }
}
