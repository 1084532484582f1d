package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.LossReason;
import dev.baton.v1.OnBecomeLeaderRequest;
import dev.baton.v1.OnLoseLeadershipRequest;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Hooks, epochs and the trust time. */
@Timeout(240)
class LeadingTest {
  final Baton app = new Baton();
  final List<String> told = new CopyOnWriteArrayList<>();
  FakeSidecar sidecar;

  @BeforeEach
  void connect() throws Exception {
    sidecar = FakeSidecar.beside(app);
  }

  @AfterEach
  void close() {
    app.close();
    sidecar.close();
  }

  void become(long epoch, double seconds) {
    sidecar.renews(epoch, Duration.ofMillis((long) (1000 * seconds)));
    sidecar
        .app()
        .onBecomeLeader(
            OnBecomeLeaderRequest.newBuilder()
                .setContext(FakeSidecar.context("default", epoch, true))
                .setTrustedFor(Times.message(Duration.ofMillis((long) (1000 * seconds))))
                .build());
  }

  void lose(long epoch) {
    sidecar
        .app()
        .onLoseLeadership(
            OnLoseLeadershipRequest.newBuilder()
                .setContext(FakeSidecar.context("default", epoch, false))
                .setReason(LossReason.LOSS_REASON_SHUTDOWN)
                .build());
  }

  static Status.Code codeOf(Runnable call) {
    return assertThrows(StatusRuntimeException.class, call::run).getStatus().getCode();
  }

  /** G1: the app leads from OnBecomeLeader to OnLoseLeadership, and its hooks see it so. */
  @Test
  void aTermOpensAndClosesWithItsHooks() {
    app.onBecomeLeader(it -> told.add("become " + it.epoch() + " " + app.isLeader()));
    app.onLoseLeadership(
        (it, reason) -> {
          assertEquals(it.group(), Cluster.context().group());
          told.add(reason + " " + it.epoch() + " " + app.isLeader());
        });
    assertFalse(app.isLeader());
    long epoch = sidecar.lead();
    assertTrue(app.isLeader());
    assertEquals(OptionalLong.of(epoch), app.epoch("default"));
    assertFalse(app.isLeader("reports"));
    sidecar.lose();
    assertFalse(app.isLeader());
    assertEquals(OptionalLong.empty(), app.epoch("default"));
    String lost = "LOSS_REASON_LEASE_LOST " + epoch + " false";
    assertEquals(List.of("become " + epoch + " true", lost), told);
  }

  /** G1: an OnBecomeLeader not above the last lost epoch opens nothing; the next one does. */
  @Test
  void lateMessagesOfLostTermsAreIgnored() {
    app.onBecomeLeader(it -> told.add("" + it.epoch()));
    become(7, 3);
    lose(7);
    become(7, 3);
    become(6, 3);
    assertFalse(app.isLeader());
    lose(9); // of a term never known here
    become(8, 3);
    assertFalse(app.isLeader());
    become(10, 3);
    assertEquals(List.of("7", "10"), told);
  }

  /** A late OnLoseLeadership of an old term leaves the new one alone; epoch 0 ends any. */
  @Test
  void anOldLossDoesNotEndANewerTerm() {
    app.onLoseLeadership((it, reason) -> told.add("" + it.epoch()));
    become(7, 3);
    lose(6);
    assertEquals(List.of(), told);
    lose(0);
    lose(0);
    assertEquals(List.of("7"), told);
    become(7, 3);
    assertFalse(app.isLeader());
    sidecar.freeze();
    become(8, 3);
    assertEquals(OptionalLong.of(8), app.epoch("default"));
    assertEquals(List.of("7"), told);
  }

  /** A loss that failed is told so whenever it is asked; but a sidecar may make contact again. */
  @Test
  void aFailingLoseHookDoesNotLockTheAppOut() {
    app.onLoseLeadership(
        (it, reason) -> {
          throw new IllegalStateException("password=hunter2");
        });
    become(7, 3);
    assertEquals(Status.Code.INTERNAL, codeOf(() -> lose(7)));
    assertEquals(Status.Code.INTERNAL, codeOf(() -> lose(7)));
    lose(0);
    become(8, 3);
    lose(7); // a newer term has begun since
  }

  /** Also one that was told of a newer term only, or that the app ends itself. */
  @Test
  void aLoseHookSeesItsOwnTermHoweverThatEnded() {
    app.onLoseLeadership(
        (it, reason) -> {
          assertEquals(it, Cluster.context());
          assertTrue(Cluster.nextId() != 0);
          told.add(it.cluster() + " " + it.epoch());
        });
    become(7, 3);
    become(8, 3);
    app.close();
    assertEquals(List.of("test 7", "test 8"), told);
  }

  /** G1: who tells a loss again, while a slow log holds it up, waits for its end all the same. */
  @Test
  void aLossToldTwiceIsAnsweredOnlyWhenAllHasStopped() throws Exception {
    app.onLoseLeadership((it, reason) -> told.add("lost"));
    become(7, 3);
    CountDownLatch held = new CountDownLatch(1);
    Logger log = Logger.getLogger("baton");
    log.setFilter(
        line -> {
          if (line.getMessage().startsWith("no longer leading")) {
            held.countDown();
            assertTrue(Backoff.slept(Duration.ofMillis(500)));
          }
          return true;
        });
    try {
      var first = CompletableFuture.runAsync(() -> lose(7));
      held.await();
      lose(7);
      told.add("answered");
      first.get();
    } finally {
      log.setFilter(null);
    }
    assertEquals(List.of("lost", "answered"), told);
  }

  /** The hooks of two terms never overlap, even if the end of the first got lost. */
  @Test
  void aNewerTermEndsTheOneWhoseLossWasNeverTold() {
    app.onBecomeLeader(it -> told.add("become " + it.epoch()));
    app.onLoseLeadership((it, reason) -> told.add("lose " + it.epoch()));
    become(7, 3);
    become(8, 3);
    assertEquals(List.of("become 7", "lose 7", "become 8"), told);
  }

  /** G1: without renewal the term ends by itself: runs are stopped, then its hook runs, once. */
  @Test
  void trustEndsWithoutRenewal() throws Exception {
    app.onLoseLeadership((it, reason) -> told.add(reason + " " + it.epoch()));
    app.singleton(
        "coordinator",
        context -> {
          told.add("begun");
          try {
            Thread.sleep(60_000);
          } finally {
            told.add("stopped " + context.isCancelled());
          }
          return null;
        });
    sidecar.freeze();
    long epoch = sidecar.lead("default", Duration.ofSeconds(1));
    long end = Clock.SYSTEM.latest() + 1_000_000_000L;
    CompletableFuture<Status.Code> answer =
        CompletableFuture.supplyAsync(
            () -> codeOf(() -> sidecar.deliver(sidecar.singleton("coordinator"))));
    eventually(() -> !told.isEmpty());
    while (app.isLeader()) {
      assertTrue(Clock.SYSTEM.earliest() < end);
      assertEquals(List.of("begun"), told);
      Thread.sleep(5);
    }
    assertEquals(Status.Code.UNAVAILABLE, answer.get());
    eventually(() -> told.size() == 3);
    String lost = "LOSS_REASON_LEASE_LOST " + epoch;
    assertEquals(List.of("begun", "stopped true", lost), told);
    Status.Code refused = codeOf(() -> sidecar.deliver(sidecar.singleton("coordinator")));
    assertEquals(Status.Code.UNAVAILABLE, refused);
    lose(epoch); // is answered, without the hook
    assertEquals(3, told.size());
  }

  /** G1: neither an old term's Execute nor one of a term not yet known is begun. */
  @Test
  void runsOfOtherTermsAreRefused() {
    app.schedule("report", context -> Result.of(told.add("run")));
    long epoch = sidecar.lead();
    for (long other : new long[] {epoch - 1, epoch + 1}) {
      ExecuteRequest request =
          ExecuteRequest.newBuilder()
              .setContext(FakeSidecar.context("default", other, true))
              .setName("report")
              .build();
      assertEquals(Status.Code.UNAVAILABLE, codeOf(() -> sidecar.app().execute(request)));
    }
    sidecar.execute("report", null);
    assertEquals(List.of("run"), told);
  }

  /** G1: after a failed hook the app does not lead, although its sidecar still says so. */
  @Test
  void aTermThatWasRefusedIsNotRenewed() throws Exception {
    app.onBecomeLeader(
        it -> {
          throw new IOException("password=hunter2");
        });
    long epoch = sidecar.begin("default", Duration.ofSeconds(3));
    StatusRuntimeException error =
        assertThrows(StatusRuntimeException.class, () -> become(epoch, 3));
    assertEquals(Status.INTERNAL.getCode(), error.getStatus().getCode());
    assertEquals("hook failed: IOException", error.getStatus().getDescription());
    for (int i = 0; i < 8; i++) {
      assertFalse(app.isLeader());
      Thread.sleep(100);
    }
  }

  /** G1: a message that was held up does not stretch trust: the boot time reading ends it. */
  @Test
  void theEarlierOfTheTwoEndsOfTrustCounts() {
    sidecar
        .app()
        .onBecomeLeader(
            OnBecomeLeaderRequest.newBuilder()
                .setContext(FakeSidecar.context("default", 7, true))
                .setTrustedFor(Times.message(Duration.ofSeconds(60)))
                .setTrustedUntilBoottime(Times.message(Duration.ofMillis(10))) // long ago
                .build());
    assertFalse(app.isLeader());
  }

  /** G1: a watch message with another epoch, or that another leads, ends trust at once. */
  @Test
  void aWatchThatNamesAnotherTermEndsTrust() throws Exception {
    sidecar.lead("default", Duration.ofSeconds(60));
    sidecar.begin("default", Duration.ofSeconds(60));
    eventually(() -> !app.isLeader());
  }

  /** G1: OnLoseLeadership is answered, and a successor let in, only after the last act. */
  @Test
  void losingWaitsUntilHandlersHaveStopped() throws Exception {
    app.singleton(
        "coordinator",
        context -> {
          try {
            told.add("begun");
            Thread.sleep(60_000);
          } catch (InterruptedException stop) {
            Thread.sleep(200); // cleaning up is not cut short
            told.add("stopped");
            throw stop;
          }
          return null;
        });
    app.onLoseLeadership((it, reason) -> told.add("hook"));
    sidecar.lead();
    CompletableFuture<Status.Code> answer =
        CompletableFuture.supplyAsync(
            () -> codeOf(() -> sidecar.deliver(sidecar.singleton("coordinator"))));
    eventually(() -> !told.isEmpty());
    sidecar.lose();
    assertEquals(List.of("begun", "stopped", "hook"), told);
    assertEquals(Status.Code.UNAVAILABLE, answer.get());
  }

  /** A failing hook is said to the sidecar, so that the successor waits out its grace. */
  @Test
  void aFailingLoseHookIsNoAcknowledgement() {
    app.onLoseLeadership(
        (it, reason) -> {
          throw new IllegalStateException("busy");
        });
    become(7, 3);
    assertEquals(Status.Code.INTERNAL, codeOf(() -> lose(7)));
    assertFalse(app.isLeader());
  }

  /** Losing leadership is always acknowledged, whatever the reason is called. */
  @Test
  void aReasonOfANewerSidecarIsNoError() {
    app.onLoseLeadership((it, reason) -> told.add(reason.name()));
    become(7, 3);
    sidecar
        .app()
        .onLoseLeadership(
            OnLoseLeadershipRequest.newBuilder()
                .setContext(FakeSidecar.context("default", 7, false))
                .setReasonValue(99)
                .build());
    assertEquals(List.of("UNRECOGNIZED"), told);
  }

  /** A handler learns from the watch that a hand-over has begun, and may end by itself. */
  @Test
  void drainingIsToldToHandlers() throws Exception {
    app.schedule(
        "report",
        context -> {
          told.add("before " + context.isDraining());
          boolean told = context.awaitDraining(Duration.ofSeconds(10));
          return Result.of(told && context.isDraining());
        });
    sidecar.lead();
    CompletableFuture<String> result =
        CompletableFuture.supplyAsync(
            () -> sidecar.execute("report", null).getSucceeded().getResult().toStringUtf8());
    eventually(() -> !told.isEmpty());
    sidecar.drain("default");
    assertEquals("true", result.get());
    assertEquals(List.of("before false"), told);
  }
}
