package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.protobuf.ByteString;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.Failed;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Steps and deferreds: what survives an attempt. */
@Timeout(240)
class DurableTest {
  final Baton app = new Baton();
  private final List<String> done = new CopyOnWriteArrayList<>();
  FakeSidecar sidecar;

  /** What a step returns. */
  record Payment(int amount, String currency) {}

  @BeforeEach
  void connect() throws Exception {
    sidecar = FakeSidecar.beside(app);
  }

  @AfterEach
  void close() {
    app.close();
    sidecar.close();
  }

  /** G5: a later attempt gets its checkpoints and skips what was done, whatever the kind. */
  @Test
  void storedStepsAreNotRunAgain() {
    byte[] box = {0, -1, 7};
    app.schedule(
        "order",
        context -> {
          Payment paid = context.step("charge", Payment.class, () -> pay());
          byte[] packed =
              context.step(
                  "pack",
                  byte[].class,
                  () -> {
                    done.add("pack");
                    return box;
                  });
          context.step("note", () -> done.add("note"));
          assertEquals(new Payment(7, "EUR"), paid);
          assertArrayEquals(box, packed);
          if (context.attempt() == 1) {
            throw new Ending.Retry("crashed");
          }
          return Result.done();
        });
    sidecar.lead();
    FakeRuns.Record run = sidecar.schedule("order", null);
    assertEquals("crashed", sidecar.deliver(run).getFailed().getMessage());
    assertEquals(ExecuteResponse.OutcomeCase.SUCCEEDED, sidecar.deliver(run).getOutcomeCase());
    assertEquals(List.of("charge", "pack", "note"), done);
    ByteString raw = ByteString.copyFrom(new byte[] {0, 0, -1, 7});
    assertEquals(raw, run.checkpoints().get("pack")); // as every client stores bytes
  }

  private Payment pay() {
    done.add("charge");
    return new Payment(7, "EUR");
  }

  /** G5: a run cut off by the end of its term goes on in the next one. */
  @Test
  void stepsSurviveAChangeOfLeader() throws Exception {
    app.schedule(
        "order",
        context -> {
          context.step("charge", () -> done.add("charge"));
          if (context.attempt() == 1) {
            done.add("waiting");
            Thread.sleep(60_000);
          }
          return Result.of("attempt " + context.attempt());
        });
    sidecar.lead();
    FakeRuns.Record run = sidecar.schedule("order", null);
    CompletableFuture.runAsync(() -> sidecar.deliver(run));
    eventually(() -> done.contains("waiting"));
    sidecar.lose();
    sidecar.lead();
    String result = sidecar.deliver(run).getSucceeded().getResult().toStringUtf8();
    assertEquals("\"attempt 2\"", result);
    assertEquals(List.of("charge", "waiting"), done);
  }

  /** The second step would silently get the first one's result: a mistake, so no retry. */
  @Test
  void aStepNameUsedTwiceFailsForGood() {
    app.schedule(
        "order",
        context -> {
          context.step("charge", () -> {});
          context.step("charge", () -> {});
          return null;
        });
    sidecar.lead();
    Failed failed = sidecar.execute("order", null).getFailed();
    assertFalse(failed.getRetryable());
    assertEquals("step 'charge' was used twice in one attempt", failed.getMessage());
  }

  /** Only what a step returned is remembered; after an error it runs again. */
  @Test
  void aFailedStepIsNotStored() {
    app.schedule(
        "order",
        context ->
            Result.of(
                context.step(
                    "charge",
                    Integer.class,
                    () -> {
                      done.add("try");
                      if (done.size() == 1) {
                        throw new IOException("declined");
                      }
                      return done.size();
                    })));
    sidecar.lead();
    FakeRuns.Record run = sidecar.schedule("order", null);
    assertEquals("IOException", sidecar.deliver(run).getFailed().getCode());
    assertEquals("2", sidecar.deliver(run).getSucceeded().getResult().toStringUtf8());
  }

  /** The same name of one run is the same token; the first completion stands. */
  @Test
  void aDeferredIsAwaitedOverAttempts() throws Exception {
    List<String> tokens = new CopyOnWriteArrayList<>();
    app.schedule(
        "approval",
        context -> {
          Deferred boss = context.deferred("boss");
          tokens.add(boss.token());
          if (context.attempt() == 1) {
            throw new Ending.Retry("restarted");
          }
          return Result.of(boss.await(Payment.class));
        });
    sidecar.lead();
    FakeRuns.Record run = sidecar.schedule("approval", null);
    sidecar.deliver(run);
    var answer = CompletableFuture.supplyAsync(() -> sidecar.deliver(run));
    eventually(() -> tokens.size() == 2);
    assertEquals(tokens.get(0), tokens.get(1));
    Deferreds deferreds = app.sidecar().deferreds();
    Payment value = new Payment(1, "EUR");
    deferreds.complete(tokens.get(0), value);
    deferreds.complete(tokens.get(0), value);
    assertThrows(
        BatonException.AlreadyExists.class, () -> deferreds.complete(tokens.get(0), "other"));
    String result = answer.get().getSucceeded().getResult().toStringUtf8();
    assertEquals("{\"amount\":1,\"currency\":\"EUR\"}", result);
  }

  /** Awaiting one that was failed or has expired throws. */
  @Test
  void deferredsFailExpireAndAreUnknown() {
    Deferreds deferreds = app.sidecar().deferreds();
    Deferred failed = deferreds.create("failed");
    deferreds.fail(failed.token(), "refused");
    var refused = assertThrows(BatonException.DeferredFailed.class, failed::await);
    assertEquals("refused", refused.getMessage());
    Deferred expiring = deferreds.create("expiring", Duration.ofMillis(1));
    var expired = assertThrows(BatonException.DeferredFailed.class, expiring::await);
    assertEquals("expired", expired.getMessage());
    assertThrows(BatonException.NotFound.class, () -> deferreds.get("no such token"));
  }
}
