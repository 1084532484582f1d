package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.protobuf.ByteString;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Failed;
import io.grpc.Context.CancellableContext;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What handlers are given, and what their answers become. */
@Timeout(240)
class ExecutingTest {
  final Baton app = new Baton();
  private final List<String> told = new CopyOnWriteArrayList<>();
  FakeSidecar sidecar;

  /** A state. */
  record Count(int count, String unit) {}

  @BeforeEach
  void connect() throws Exception {
    sidecar = FakeSidecar.beside(app);
  }

  @AfterEach
  void close() {
    app.close();
    sidecar.close();
  }

  private String result(String name, Object payload) {
    return sidecar.execute(name, payload).getSucceeded().getResult().toStringUtf8();
  }

  /** Payload, state, identity and memory of the run arrive as they were sent. */
  @Test
  void aHandlerSeesTheWholeRequest() {
    List<Context> seen = new CopyOnWriteArrayList<>();
    app.schedule(
        "report",
        context -> {
          seen.add(context);
          assertEquals(Cluster.context(), context.cluster());
          Count state = context.state(Count.class, new Count(0, "rows"));
          return Result.of(Map.of("rows", 3)).withState(new Count(state.count() + 1, "rows"));
        });
    long epoch = sidecar.lead();
    FakeRuns.Record run = sidecar.schedule("report", Map.of("day", "monday"));
    assertEquals("{\"rows\":3}", sidecar.deliver(run).getSucceeded().getResult().toStringUtf8());
    sidecar.execute("report", null);
    Context context = seen.get(0);
    assertEquals("monday", context.payload(JsonObject.class).get("day").getAsString());
    assertEquals(run.id(), context.runId());
    assertEquals(1, context.attempt());
    assertEquals(epoch, context.epoch());
    assertEquals("key-" + run.id(), context.idempotencyKey());
    assertEquals("schedule", context.cluster().entityType());
    assertEquals("report", context.cluster().entityId());
    assertTrue(context.deadline().isEmpty());
    assertEquals(new Count(1, "rows"), seen.get(1).state(Count.class));
    assertEquals(null, seen.get(1).payload(JsonObject.class));
    String owned = sidecar.state.value("schedule-state:report").toStringUtf8();
    assertEquals("{\"count\":2,\"unit\":\"rows\"}", owned);
  }

  /** Fields that a stored state does not have come from the given one. */
  @Test
  void defaultsFillWhatAStateLacks() {
    sidecar.state.write("schedule-state:report", ByteString.copyFromUtf8("{\"count\":5}"));
    app.schedule(
        "report", context -> Result.of(context.state(Count.class, new Count(1, "rows"))));
    sidecar.lead();
    assertEquals("{\"count\":5,\"unit\":\"rows\"}", result("report", null));
  }

  /** Returning and throwing become outcomes; an unexpected error tells its type and text. */
  @Test
  void answers() {
    app.schedule("nothing", context -> null);
    app.schedule("raw", context -> Result.of(new byte[] {1}));
    app.schedule("skip", context -> fail(new Ending.Skip("holiday")));
    app.schedule(
        "retry",
        context -> fail(new Ending.Retry("later").after(Duration.ofMillis(500)).state("s")));
    app.schedule("fail", context -> fail(new Ending.Fail("never").code("NO_STOCK")));
    app.schedule("silent skip", context -> fail(new Ending.Skip(null)));
    app.schedule("silent fail", context -> fail(new Ending.Fail(null)));
    app.schedule("bug", context -> fail(new IllegalStateException("no such table")));
    app.schedule("error", context -> fail(new StackOverflowError()));
    sidecar.lead();
    assertEquals(ByteString.EMPTY, sidecar.execute("nothing", null).getSucceeded().getResult());
    ByteString raw = sidecar.execute("raw", null).getSucceeded().getResult();
    assertEquals(ByteString.copyFrom(new byte[] {1}), raw);
    assertEquals("holiday", sidecar.execute("skip", null).getSkipped().getReason());
    Failed retry = sidecar.execute("retry", null).getFailed();
    assertTrue(retry.getRetryable());
    assertEquals(500_000_000, retry.getRetryAfter().getNanos());
    assertEquals("\"s\"", sidecar.state.value("schedule-state:retry").toStringUtf8());
    Failed fail = sidecar.execute("fail", null).getFailed();
    assertFalse(fail.getRetryable());
    assertEquals("NO_STOCK", fail.getCode());
    assertTrue(sidecar.execute("silent skip", null).hasSkipped());
    assertFalse(sidecar.execute("silent fail", null).getFailed().getRetryable());
    Failed bug = sidecar.execute("bug", null).getFailed();
    assertEquals("IllegalStateException: no such table", bug.getMessage());
    assertEquals("IllegalStateException", bug.getCode());
    assertTrue(sidecar.execute("error", null).getFailed().getRetryable());
  }

  /** The limit of a message is in bytes; no half of a character is left. */
  @Test
  void theTextOfAnErrorIsCut() {
    app.schedule("long", context -> fail(new IllegalStateException("ä".repeat(4096))));
    sidecar.lead();
    String message = sidecar.execute("long", null).getFailed().getMessage();
    assertEquals("IllegalStateException: " + "ä".repeat((4096 - 23) / 2), message);
  }

  /** With errors hidden no text of an unexpected one leaves the app. */
  @Test
  void errorsCanBeHidden() throws Exception {
    try (Baton discreet = new Baton();
        FakeSidecar beside = new FakeSidecar()) {
      discreet.schedule("secret", context -> fail(new IllegalStateException("password=hunter2")));
      discreet.attach(beside.attachOptions().withHiddenErrors(true));
      beside.stream.session();
      beside.lead();
      ExecuteResponse secret = beside.execute("secret", null);
      assertEquals("unhandled IllegalStateException", secret.getFailed().getMessage());
      assertFalse(secret.toString().contains("hunter2"));
    }
  }

  private static Result fail(Throwable thrown) throws Exception {
    if (thrown instanceof Error error) {
      throw error;
    }
    throw (Exception) thrown;
  }

  /** NOT_FOUND for an unknown handler: undeliverable, it uses up no retry. */
  @Test
  void unknownHandlersAreUndeliverable() {
    app.singleton("coordinator", context -> null);
    sidecar.lead();
    for (String name : List.of("nobody", "coordinator")) {
      StatusRuntimeException error =
          assertThrows(StatusRuntimeException.class, () -> sidecar.execute(name, null));
      assertEquals(Status.Code.NOT_FOUND, error.getStatus().getCode());
    }
  }

  /** A call that the sidecar cancels interrupts its handler, and no other. */
  @Test
  void aCancelledCallInterruptsItsHandler() throws Exception {
    app.schedule(
        "slow",
        context -> {
          told.add("begun");
          try {
            Thread.sleep(60_000);
          } catch (InterruptedException stop) {
            told.add("stopped " + context.isCancelled());
          }
          return null;
        });
    app.schedule("quick", context -> Result.of(Thread.currentThread().isInterrupted()));
    sidecar.lead();
    CancellableContext call = io.grpc.Context.ROOT.withCancellation();
    CompletableFuture.runAsync(() -> call.run(() -> sidecar.execute("slow", null)));
    eventually(() -> !told.isEmpty());
    call.cancel(null);
    eventually(() -> told.size() == 2);
    assertEquals(List.of("begun", "stopped true"), told);
    assertEquals("false", result("quick", null));
    assertTrue(app.isLeader());
  }

  /** G3: nothing that an attempt writes after its term is accepted. */
  @Test
  void anOldAttemptIsFenced() throws Exception {
    app.singleton(
        "coordinator",
        context -> {
          told.add("begun");
          try {
            Thread.sleep(60_000);
          } catch (InterruptedException stop) {
            assertThrows(BatonException.Fenced.class, () -> context.putState(1));
            assertThrows(BatonException.Fenced.class, context::heartbeat);
            assertThrows(
                BatonException.Fenced.class, () -> context.step("s", Integer.class, () -> 1));
            told.add("fenced");
          }
          return null;
        });
    sidecar.lead();
    CompletableFuture.runAsync(() -> sidecar.deliver(sidecar.singleton("coordinator")));
    eventually(() -> !told.isEmpty());
    sidecar.lose();
    assertEquals(List.of("begun", "fenced"), told);
    assertEquals(ByteString.EMPTY, sidecar.state.value("singleton-state:coordinator"));
  }

  /** A handler that waits for the sidecar is stopped there too. */
  @Test
  void aHandlerThatWaitsForTheSidecarIsStopped() throws Exception {
    app.schedule(
        "approval",
        context -> {
          told.add("begun");
          return Result.of(context.deferred("never").await());
        });
    sidecar.lead();
    CompletableFuture.runAsync(() -> sidecar.execute("approval", null));
    eventually(() -> !told.isEmpty());
    sidecar.lose();
    assertFalse(app.isLeader());
  }

  /** Progress and owned state are visible before the run ends. */
  @Test
  void heartbeatsAndStateAreWrittenWhileItRuns() {
    app.singleton(
        "coordinator",
        context -> {
          context.putState(new Count(1, "x"));
          context.heartbeat(0.5, "half way");
          assertEquals(new Count(1, "x"), context.state(Count.class));
          Entry stored = app.sidecar().state().getStrong("singleton-state:coordinator").get();
          assertEquals(new Count(1, "x"), stored.json(Count.class));
          return Result.of(app.sidecar().runs().get(context.runId()).getProgressMessage());
        });
    sidecar.lead();
    ExecuteResponse response = sidecar.deliver(sidecar.singleton("coordinator"));
    assertEquals("\"half way\"", response.getSucceeded().getResult().toStringUtf8());
  }

  /** Below a handler it is there, also in executors that it is carried into; outside it is not. */
  @Test
  void theClusterContextReachesEverythingBelow() {
    Executor carried = Cluster.carriedInto(ForkJoinPool.commonPool());
    app.schedule(
        "report",
        context -> {
          var entity = CompletableFuture.supplyAsync(() -> Cluster.context().entityId(), carried);
          assertTrue(Cluster.nextId() > 0);
          return Result.of(entity.get());
        });
    assertThrows(BatonException.ClusterContextRequired.class, Cluster::context);
    assertThrows(BatonException.ClusterContextRequired.class, Cluster::nextId);
    sidecar.lead();
    assertEquals("\"report\"", result("report", null));
    var outside = CompletableFuture.supplyAsync(Cluster::context, carried);
    assertThrows(Exception.class, outside::get);
  }

  /** `traceparent` of a callback comes back on what its handler asks of the sidecar. */
  @Test
  void theTraceGoesOnWithCallsToTheSidecar() {
    app.schedule("report", context -> Result.of(context.sidecar().state().has("a")));
    sidecar.send(Connection.TRACEPARENT, "00-1-2-01");
    sidecar.lead();
    sidecar.calls.clear();
    sidecar.execute("report", null);
    assertTrue(
        sidecar.calls.stream().anyMatch(it -> "00-1-2-01".equals(it.get(Connection.TRACEPARENT))));
  }

  /** A second handler of one name is a mistake, said at once. */
  @Test
  void namesAreRegisteredOnce() {
    app.schedule("report", context -> null);
    assertThrows(
        IllegalArgumentException.class, () -> app.schedule("report", context -> null));
    app.singleton("report", context -> null);
  }
}
