package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.Hello;
import dev.baton.v1.RunAnswer;
import io.grpc.Status;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What is special about a stream; AttachedLeadingTest and its siblings have what is the same. */
@Timeout(240)
class AttachTest {
  private final Baton app = new Baton();
  private final List<String> told = new CopyOnWriteArrayList<>();
  private FakeSidecar sidecar;

  @BeforeEach
  void open() throws Exception {
    sidecar = new FakeSidecar();
  }

  @AfterEach
  void close() {
    app.close();
    sidecar.close();
  }

  private FakeSession attach() throws Exception {
    app.attach(sidecar.attachOptions());
    assertTrue(app.awaitAttached(Duration.ofSeconds(60)));
    return sidecar.stream.session();
  }

  private ExecuteRequest tick(String name) {
    return sidecar.schedule(name, null).next(sidecar.leader("default").getEpoch());
  }

  /** Waits to be interrupted, and says so. */
  private Result waits(Context context) throws InterruptedException {
    told.add("begun");
    try {
      Thread.sleep(600_000);
    } finally {
      told.add("stopped " + context.isCancelled());
    }
    return null;
  }

  /** The first message says who attaches and what it can do. */
  @Test
  void helloNamesTheProcessAndItsHandlers() throws Exception {
    app.schedule("report", context -> null);
    app.singleton("coordinator", context -> null);
    app.attach(sidecar.attachOptions().withCapacity(7).withRevision(42));
    Hello hello = sidecar.stream.session().hello;
    String pom = Files.readString(Path.of("pom.xml"));
    String version = hello.getClient().substring("baton-java/".length());
    assertTrue(pom.contains("<artifactId>baton-client</artifactId>\n  <version>" + version));
    assertEquals("" + ProcessHandle.current().pid(), hello.getProcessId());
    assertEquals(7, hello.getCapacity());
    assertEquals(List.of("report"), hello.getSchedulesList());
    assertEquals(List.of("coordinator"), hello.getSingletonsList());
    assertEquals(42, hello.getRevision());
    assertEquals(0, hello.getDeclaredSchedulesCount());
  }

  /** What the sidecar would refuse is refused before. */
  @Test
  void theCapacityHasLimits() {
    assertThrows(
        IllegalArgumentException.class, () -> sidecar.attachOptions().withCapacity(0));
    assertThrows(
        IllegalArgumentException.class, () -> sidecar.attachOptions().withCapacity(10_001));
  }

  /** A process is healthy as long as its handlers can be started: pongs come while others block. */
  @Test
  void pingsAreAnsweredWhileHandlersBlock() throws Exception {
    app.schedule("slow", this::waits);
    FakeSession session = attach();
    sidecar.lead();
    session.run(tick("slow"));
    eventually(() -> told.contains("begun"));
    assertTrue(session.ping(1).get());
    assertTrue(session.ping(2).get());
  }

  /** G5: a cancelled attempt is interrupted, and no answer is sent for it. */
  @Test
  void aCancelledAttemptIsNotAnswered() throws Exception {
    app.schedule("slow", this::waits);
    FakeSession session = attach();
    sidecar.lead();
    ExecuteRequest slow = tick("slow");
    session.run(slow);
    eventually(() -> told.contains("begun"));
    session.cancel(slow);
    eventually(() -> told.contains("stopped true"));
    assertTrue(session.ping(1).get());
    assertTrue(session.received.stream().allMatch(it -> it.getAnswersCount() == 0));
    assertTrue(app.isLeader());
  }

  /** The deadline of a run ends it, whether the sidecar cancels it or not. */
  @Test
  void aRunIsStoppedAtItsDeadline() throws Exception {
    app.schedule("slow", this::waits);
    FakeSession session = attach();
    sidecar.lead();
    Instant soon = Instant.now().plusMillis(300);
    ExecuteRequest slow = tick("slow").toBuilder().setDeadline(Times.message(soon)).build();
    RunAnswer answer = session.run(slow).get();
    assertFalse(Instant.now().isBefore(soon));
    assertEquals(Status.Code.DEADLINE_EXCEEDED.value(), answer.getStatus().getCode());
    ExecuteRequest early =
        tick("slow").toBuilder().setDeadline(Times.message(Instant.EPOCH)).build();
    assertEquals(
        Status.Code.DEADLINE_EXCEEDED.value(), session.run(early).get().getStatus().getCode());
  }

  /** G1: a broken stream ends the terms and the runs; the process attaches again. */
  @Test
  void aBrokenStreamEndsEverythingAndIsOpenedAgain() throws Exception {
    app.schedule("slow", this::waits);
    app.onLoseLeadership((it, reason) -> told.add(it.cluster() + " " + reason));
    FakeSession session = attach();
    long epoch = sidecar.lead();
    session.run(tick("slow"));
    eventually(() -> told.contains("begun"));
    session.end(Status.UNAVAILABLE.withDescription("the sidecar stops"));
    eventually(() -> told.size() == 3);
    assertEquals(List.of("begun", "stopped true", "test LOSS_REASON_LEASE_LOST"), told);
    assertFalse(app.isLeader());
    FakeSession next = sidecar.stream.session(1);
    sidecar.lose(); // of the old term: answered, without the hook
    assertEquals(3, told.size());
    assertTrue(sidecar.lead() > epoch);
    assertTrue(app.isLeader());
    assertTrue(next.ping(1).get());
  }

  /** G1: a term whose hook still ran when the stream broke is over before it is led. */
  @Test
  void aBrokenStreamInterruptsTheHookThatOpensATerm() throws Exception {
    app.onBecomeLeader(
        it -> {
          told.add("begun");
          try {
            Thread.sleep(600_000);
          } catch (InterruptedException stop) {
            told.add("interrupted");
            throw stop;
          }
        });
    FakeSession session = attach();
    CompletableFuture.runAsync(() -> sidecar.lead());
    eventually(() -> told.contains("begun"));
    session.end(Status.UNAVAILABLE);
    eventually(() -> told.contains("interrupted"));
    assertFalse(app.isLeader());
    sidecar.stream.session(1);
  }

  /** The sidecar may stop and start again at its address: the app comes back by itself. */
  @Test
  void aRestartedSidecarIsFoundAgain() throws Exception {
    app.schedule("report", context -> Result.of(context.cluster().runnerId()));
    attach();
    String address = sidecar.address();
    sidecar.close();
    try (FakeSidecar restarted = new FakeSidecar(address, null)) {
      restarted.stream.session();
      restarted.lead();
      String result =
          restarted.execute("report", null).getSucceeded().getResult().toStringUtf8();
      assertEquals("\"fake\"", result);
    }
  }

  /** Who has to act is told so, once; and it goes on by itself when that is done. */
  @Test
  void refusalsAreLoggedOnceAndTriedAgain() throws Exception {
    List<String> logged = new CopyOnWriteArrayList<>();
    Handler recorder = new Recorder(logged);
    Logger log = Logger.getLogger("baton");
    log.addHandler(recorder);
    try {
      sidecar.stream.refusal = Status.UNIMPLEMENTED.withDescription("unknown service");
      app.attach(sidecar.attachOptions());
      eventually(() -> sidecar.stream.refused.size() == 2);
      sidecar.stream.refusal = Status.UNAUTHENTICATED.withDescription("wrong");
      eventually(() -> sidecar.stream.refused.size() == 3);
      sidecar.stream.refusal = null;
      sidecar.stream.session();
      assertTrue(app.awaitAttached(Duration.ofSeconds(60)));
      List<String> refusals =
          logged.stream().filter(line -> line.startsWith("the sidecar")).toList();
      assertEquals(2, refusals.size(), logged::toString);
      assertTrue(refusals.get(0).contains("upgrade it, or serve(address)"));
      assertTrue(refusals.get(1).contains("BATON_API_TOKEN_FILE"));
    } finally {
      log.removeHandler(recorder);
    }
  }

  /** An answer that no message can hold is a failure that says so. */
  @Test
  void anAnswerThatIsTooLargeFails() throws Exception {
    sidecar.stream.welcome = sidecar.stream.welcome.toBuilder().setMessageBytesMax(1000).build();
    app.schedule("fits", context -> Result.of(new byte[900]));
    app.schedule("large", context -> Result.of(new byte[1000]));
    app.schedule(
        "step",
        context -> {
          context.step("large", byte[].class, () -> new byte[1000]);
          return null;
        });
    FakeSession session = attach();
    sidecar.lead();
    RunAnswer fits = session.run(tick("fits")).get();
    assertEquals(900, fits.getResponse().getSucceeded().getResult().size());
    var large = session.run(tick("large")).get().getResponse().getFailed();
    assertEquals("TOO_LARGE", large.getCode());
    assertFalse(large.getRetryable());
    assertTrue(large.getMessage().contains("bytes"));
    var step = session.run(tick("step")).get().getResponse().getFailed();
    assertEquals("LimitExceeded", step.getCode());
  }

  /** Many runs at once are all answered, in messages of at most 512. */
  @Test
  void everyRunOfABurstIsAnswered() throws Exception {
    CountDownLatch all = new CountDownLatch(1);
    app.schedule(
        "report",
        context -> {
          all.await();
          return null;
        });
    FakeSession session = attach();
    sidecar.lead();
    List<ExecuteRequest> requests = new ArrayList<>();
    for (int i = 0; i < 600; i++) {
      requests.add(tick("report"));
    }
    List<CompletableFuture<RunAnswer>> answers = session.runAll(requests);
    all.countDown();
    for (CompletableFuture<RunAnswer> answer : answers) {
      answer.get();
    }
    assertTrue(session.received.stream().allMatch(it -> it.getAnswersCount() <= 512));
  }

  /** A sidecar that does not read for a while gets everything later, in few messages. */
  @Test
  void answersWaitForASidecarThatDoesNotRead() throws Exception {
    byte[] large = new byte[100_000];
    app.schedule("report", context -> Result.of(large));
    FakeSession session = attach();
    sidecar.lead();
    session.deaf = true;
    session.run(tick("report")).get(); // the last that is read
    List<ExecuteRequest> requests = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      requests.add(tick("report"));
    }
    List<CompletableFuture<RunAnswer>> answers = session.runAll(requests);
    assertFalse(answers.get(59).isDone());
    session.listen();
    for (CompletableFuture<RunAnswer> answer : answers) {
      assertEquals(large.length, answer.get().getResponse().getSucceeded().getResult().size());
    }
    assertTrue(
        session.received.stream().allMatch(it -> it.getSerializedSize() <= StreamWriter.BYTES_MAX));
    assertTrue(session.received.stream().anyMatch(it -> it.getAnswersCount() > 1));
  }

  /** A step that the sidecar cannot store now is sent again; the handler does not notice. */
  @Test
  void aStepIsStoredOnceTheSidecarCan() throws Exception {
    app.schedule(
        "order",
        context -> {
          context.step("charge", () -> told.add("charge"));
          return null;
        });
    FakeSession session = attach();
    sidecar.lead();
    session.refusesStoring.add(Status.UNAVAILABLE.withDescription("no database"));
    FakeRuns.Record run = sidecar.schedule("order", null);
    assertTrue(sidecar.deliver(run).hasSucceeded());
    assertEquals(ByteString.copyFromUtf8("null"), run.checkpoints().get("charge"));
    assertEquals(List.of("charge"), told);
    assertFalse(sidecar.methods.contains("Checkpoint"));
    assertFalse(sidecar.methods.contains("Watch"));
  }

  /** A step that waits for its answer fails with the stream; the attempt is over anyway. */
  @Test
  void aStepFailsWithTheStream() throws Exception {
    app.schedule(
        "order",
        context -> {
          try {
            context.heartbeat("waiting");
          } catch (BatonException error) {
            told.add(error.reason());
            throw error;
          }
          return null;
        });
    FakeSession session = attach();
    sidecar.lead();
    sidecar.runs.holdsAt = "waiting";
    ExecuteRequest order = tick("order");
    session.run(order);
    eventually(() -> "waiting".equals(sidecar.runs.get(order.getRunId()).message()));
    session.end(Status.UNAVAILABLE);
    eventually(() -> !told.isEmpty());
    assertTrue(List.of("Unavailable", "Cancelled").contains(told.get(0)), told.get(0));
  }

  /** Several processes may attach to one sidecar; each has its own session. */
  @Test
  void severalProcessesAttach() throws Exception {
    FakeSession first = attach();
    try (Baton sibling = new Baton()) {
      sibling.schedule("report", context -> Result.of("sibling"));
      sibling.attach(sidecar.attachOptions());
      FakeSession second = sidecar.stream.session(1);
      assertTrue(first.ping(1).get());
      assertTrue(second.ping(1).get());
      sidecar.lead(); // the newest session
      assertTrue(sibling.isLeader());
      assertFalse(app.isLeader());
    }
  }

  /** G12: the token of the API is sent with the stream, which may go through a socket file. */
  @Test
  void theStreamCarriesTheTokenThroughASocketFile(@TempDir Path directory) throws Exception {
    Path token = Files.writeString(directory.resolve("token"), "secret\n");
    String socket = "unix://" + directory.resolve("api.sock");
    try (FakeSidecar guarded = new FakeSidecar(socket, "secret")) {
      app.attach(guarded.attachOptions().withApiTokenFile(token));
      assertTrue(guarded.stream.session().ping(1).get());
      Files.writeString(token, "wrong-now");
      guarded.stream.session().end(Status.UNAVAILABLE);
      int before = guarded.calls.size();
      eventually(() -> guarded.calls.size() > before);
      assertEquals(1, guarded.stream.sessions.size());
    }
  }

  /** Keeps the lines of a log. */
  private static final class Recorder extends Handler {
    private final List<String> lines;

    Recorder(List<String> lines) {
      this.lines = lines;
    }

    @Override
    public void publish(LogRecord line) {
      lines.add(line.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  }
}
