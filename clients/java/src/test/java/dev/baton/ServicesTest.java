package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import dev.baton.v1.Leader;
import dev.baton.v1.Schedule;
import io.grpc.Status;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The sidecar's services as a program uses them. */
@Timeout(240)
class ServicesTest {
  private FakeSidecar fake;
  private Sidecar sidecar;

  /** A value. */
  record Stock(int left) {}

  @BeforeEach
  void connect() throws IOException {
    fake = new FakeSidecar();
    sidecar = Sidecar.connect(fake.options());
  }

  @AfterEach
  void close() {
    sidecar.close();
    fake.close();
  }

  /** Values are bytes or JSON; lists come from all pages. */
  @Test
  void stateIsReadAndWritten() {
    State state = sidecar.state();
    assertEquals(Optional.empty(), state.get("a"));
    Entry written = state.put("a", new Stock(3));
    assertEquals(new Stock(3), state.get("a").get().json(Stock.class));
    assertEquals(written.version(), state.getStrong("a").get().version());
    state.put("b/raw", new byte[] {1, 2});
    ByteString raw = ByteString.copyFrom(new byte[] {1, 2});
    assertEquals(raw, state.get("b/raw").get().value());
    for (int i = 0; i < 4; i++) {
      state.put("b/" + i, i);
    }
    assertEquals(
        List.of("b/0", "b/1", "b/2", "b/3", "b/raw"), state.list("b/").map(Entry::key).toList());
    assertEquals(5, state.size("b/"));
    assertTrue(state.has("a"));
    assertTrue(state.delete("a"));
    assertFalse(state.delete("a"));
    assertEquals(5, state.clear("b/"));
    assertEquals(0, state.size(""));
  }

  /** A lost compare-and-set changes nothing; the same request id writes once. */
  @Test
  void writesAreConditional() {
    State state = sidecar.state();
    Entry first = state.put("a", 1, Put.ifAbsent().withRequestId("one"));
    assertThrows(BatonException.Conflict.class, () -> state.put("a", 2, Put.ifAbsent()));
    assertEquals(first, state.put("a", 1, Put.ifAbsent().withRequestId("one")));
    Entry second = state.put("a", 2, Put.ifVersion(first.version()));
    assertThrows(BatonException.Conflict.class, () -> state.delete("a", first.version()));
    assertTrue(state.delete("a", second.version()));
  }

  /** modify loses no change of another writer. */
  @Test
  void modifyIsAtomic() {
    List<CompletableFuture<Void>> writers =
        Stream.generate(() -> CompletableFuture.runAsync(this::takeTen)).limit(4).toList();
    writers.forEach(CompletableFuture::join);
    assertEquals(new Stock(60), sidecar.state().get("stock").get().json(Stock.class));
  }

  private void takeTen() {
    for (int i = 0; i < 10; i++) {
      sidecar
          .state()
          .modify("stock", Stock.class, new Stock(100), stock -> new Stock(stock.left() - 1));
    }
  }

  /** Changes come in order, over a broken stream too; close ends the wait for more. */
  @Test
  void stateIsWatched() throws Exception {
    State state = sidecar.state();
    long before = state.put("k", 0).version();
    Watch<Change> changes = state.watch("", before);
    state.put("k", 1);
    assertEquals(1, changes.next().entry().json(Integer.class));
    fake.state.breakWatches();
    state.put("k", 2);
    assertEquals(2, changes.next().entry().json(Integer.class));
    ErrorInfo away = ErrorInfo.newBuilder().setReason("StateLoadFailed").build();
    fake.state.breakWatches(ConnectionTest.refusal(Status.Code.UNAVAILABLE, away));
    state.put("k", 3);
    assertEquals(3, changes.next().entry().json(Integer.class));
    state.delete("k");
    assertTrue(changes.next().deleted());
    var more = CompletableFuture.supplyAsync(changes::hasNext);
    Thread.sleep(100);
    changes.close();
    assertFalse(more.get());
    eventually(() -> fake.state.watchers() == 0);
  }

  /** Before any version is known a broken watch is told, because changes may be missing. */
  @Test
  void aWatchThatMayHaveMissedSomethingSaysSo() throws Exception {
    try (Watch<Change> changes = sidecar.state().watch("")) {
      var next = CompletableFuture.supplyAsync(changes::hasNext);
      eventually(() -> fake.state.watchers() == 1);
      fake.state.breakWatches();
      Throwable error = assertThrows(Exception.class, next::get).getCause();
      assertTrue(error instanceof BatonException.Unavailable, error.toString());
    }
  }

  /** Ids rise, are unique over threads, and come from blocks. */
  @Test
  void idsComeFromBlocks() {
    var made =
        Stream.generate(() -> CompletableFuture.supplyAsync(this::twentyIds)).limit(10).toList();
    TreeSet<Long> all = new TreeSet<>();
    made.forEach(ids -> all.addAll(ids.join()));
    assertEquals(200, all.size());
    assertTrue(fake.services.ids.blocks.get() < 20);
  }

  private List<Long> twentyIds() {
    List<Long> ids = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      ids.add(sidecar.nextId());
    }
    assertEquals(ids.stream().sorted().toList(), ids);
    return ids;
  }

  /** Schedules are made, changed, steered and previewed. */
  @Test
  void schedules() {
    Schedules schedules = sidecar.schedules();
    Schedule nightly = Schedule.newBuilder().setName("nightly").setCron("@daily").build();
    assertEquals(nightly, schedules.create(nightly));
    assertThrows(BatonException.AlreadyExists.class, () -> schedules.create(nightly));
    Schedule hourly = nightly.toBuilder().setCron("@hourly").build();
    assertEquals(hourly, schedules.update(hourly));
    assertEquals(hourly, schedules.get("nightly"));
    assertEquals(List.of(hourly), schedules.list().toList());
    assertEquals("why", schedules.pause("nightly", "why").getPauseNote());
    assertFalse(schedules.resume("nightly").getPaused());
    assertEquals(7, schedules.trigger("nightly"));
    assertFalse(fake.services.schedules.triggered.get("nightly").hasPayload());
    schedules.trigger("nightly", new Stock(1));
    var triggered = fake.services.schedules.triggered.get("nightly");
    assertEquals("{\"left\":1}", triggered.getPayload().toStringUtf8());
    assertFalse(triggered.getRequestId().isEmpty());
    Instant from = Instant.ofEpochSecond(10);
    assertEquals(List.of(30L), schedules.backfill("nightly", from, from.plusSeconds(30)));
    assertEquals(2, schedules.preview("nightly", 2).size());
    assertEquals(Instant.EPOCH, schedules.preview(nightly, 1).get(0));
    schedules.delete("nightly");
    assertThrows(BatonException.NotFound.class, () -> schedules.get("nightly"));
  }

  /** Runs, singletons and leadership are read; lists come from all pages. */
  @Test
  void theRest() {
    FakeRuns.Record run = fake.schedule("report", null);
    assertEquals(run.id(), sidecar.runs().list("report").toList().get(0).getRunId());
    assertTrue(sidecar.runs().cancel(run.id(), "enough").getCancelRequested());
    assertThrows(
        BatonException.FailedPrecondition.class, () -> sidecar.runs().retry(run.id()));
    assertEquals("coordinator", sidecar.singletons().get("coordinator").getName());
    assertEquals(1, sidecar.singletons().list().count());
    long epoch = fake.begin("default", java.time.Duration.ofSeconds(3));
    assertEquals(epoch, sidecar.leadership().get("default").getEpoch());
    List<String> groups = sidecar.leadership().list().map(Leader::getGroup).toList();
    assertEquals(List.of("default", "reports"), groups);
    try (Watch<Leader> watch = sidecar.leadership().watch("default")) {
      assertEquals(epoch, watch.next().getEpoch());
    }
  }
}
