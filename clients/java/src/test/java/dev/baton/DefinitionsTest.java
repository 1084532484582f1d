package dev.baton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.baton.v1.CatchUp;
import dev.baton.v1.DeclaredSingleton;
import dev.baton.v1.Hello;
import dev.baton.v1.Overlap;
import dev.baton.v1.RetryPolicy;
import dev.baton.v1.Schedule;
import dev.baton.v1.StatePolicy;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Schedules and singletons that the app declares itself. */
@Timeout(240)
class DefinitionsTest {
  private static final Instant START = Instant.parse("2027-01-01T00:00:00Z");
  private static final StatePolicy STATE =
      StatePolicy.newBuilder()
          .setVersion(2)
          .setInitial(ByteString.copyFromUtf8("{\"count\":0}"))
          .build();

  private static com.google.protobuf.Duration seconds(long seconds) {
    return Times.message(Duration.ofSeconds(seconds));
  }

  /** Every key of a schedule travels with hello. */
  @Test
  void aScheduleHasEveryKey() {
    ScheduleDefinition definition =
        ScheduleDefinition.cron("cleanup", "0 2 * * *")
            .withTimezone("Europe/Berlin")
            .withGroup("reports")
            .withEnabled(false)
            .withPayload(Map.of("days", 30))
            .withContentType("application/json")
            .withStartAt(START)
            .withEndAt(START.plusSeconds(1))
            .withExpectedInterval(Duration.ofSeconds(2))
            .withSkipIfOlderThan(Duration.ofSeconds(3))
            .withCatchUpOfAll(50)
            .withOverlap(Overlap.OVERLAP_SKIP)
            .withRetry(5, Duration.ofSeconds(4), Duration.ofSeconds(5))
            .withTimeout(Duration.ofSeconds(6))
            .withJitter(Duration.ofSeconds(7))
            .withPingUrl("https://example.org/ping")
            .withState(2, Map.of("count", 0));
    Schedule expected =
        Schedule.newBuilder()
            .setName("cleanup")
            .setCron("0 2 * * *")
            .setTimezone("Europe/Berlin")
            .setGroup("reports")
            .setEnabled(false)
            .setPayload(ByteString.copyFromUtf8("{\"days\":30}"))
            .setContentType("application/json")
            .setStartAt(Times.message(START))
            .setEndAt(Times.message(START.plusSeconds(1)))
            .setExpectedInterval(seconds(2))
            .setSkipIfOlderThan(seconds(3))
            .setCatchUp(CatchUp.CATCH_UP_ALL)
            .setCatchUpMax(50)
            .setOverlap(Overlap.OVERLAP_SKIP)
            .setRetry(
                RetryPolicy.newBuilder()
                    .setAttempts(5)
                    .setInitial(seconds(4))
                    .setMax(seconds(5)))
            .setTimeout(seconds(6))
            .setJitter(seconds(7))
            .setPingUrl("https://example.org/ping")
            .setState(STATE)
            .build();
    assertEquals(expected, definition.message());
  }

  /** The other two timings, and defaults that are left to the sidecar. */
  @Test
  void timings() {
    Schedule every = ScheduleDefinition.every("poll", Duration.ofSeconds(30)).message();
    assertEquals(
        Schedule.newBuilder().setName("poll").setEvery(seconds(30)).build(), every);
    Schedule at =
        ScheduleDefinition.at("once", START).withCatchUp(CatchUp.CATCH_UP_NONE).message();
    assertEquals(Times.message(START), at.getAt());
    assertEquals(CatchUp.CATCH_UP_NONE, at.getCatchUp());
  }

  /** Hello carries what was declared; a name alone is a handler only. */
  @Test
  void definitionsAreSentWithHello() throws Exception {
    try (Baton app = new Baton();
        FakeSidecar sidecar = new FakeSidecar()) {
      app.schedule(ScheduleDefinition.every("poll", Duration.ofSeconds(30)), context -> null);
      app.schedule("of-the-file", context -> null);
      app.singleton(
          SingletonDefinition.named("coordinator")
              .withGroup("reports")
              .withExpectedInterval(Duration.ofSeconds(8))
              .withRestartAfter(Duration.ofSeconds(9))
              .withState(2, Map.of("count", 0)),
          context -> null);
      app.job("send-mail", context -> null);
      app.attach(sidecar.attachOptions());
      Hello hello = sidecar.stream.session().hello;
      assertTrue(hello.getSchedulesList().containsAll(List.of("poll", "of-the-file")));
      assertEquals(1, hello.getDeclaredSchedulesCount());
      assertEquals("poll", hello.getDeclaredSchedules(0).getName());
      assertEquals(List.of("coordinator"), hello.getSingletonsList());
      assertEquals(List.of("send-mail"), hello.getJobsList());
      DeclaredSingleton expected =
          DeclaredSingleton.newBuilder()
              .setName("coordinator")
              .setGroup("reports")
              .setExpectedInterval(seconds(8))
              .setRestartAfter(seconds(9))
              .setState(STATE)
              .build();
      assertEquals(List.of(expected), hello.getDeclaredSingletonsList());
    }
  }

  /** A name that is taken is declared by nobody else. */
  @Test
  void namesAreDeclaredOnce() {
    Baton app = new Baton();
    app.schedule("poll", context -> null);
    ScheduleDefinition again = ScheduleDefinition.every("poll", Duration.ofSeconds(30));
    assertThrows(
        IllegalArgumentException.class, () -> app.schedule(again, context -> null));
  }

  /** The number of a build comes from the environment, unless the program has one. */
  @Test
  void theRevision() {
    assertEquals(0, Options.from(Map.of()).revision());
    assertEquals(7, Options.from(Map.of("BATON_REVISION", "7")).revision());
    assertEquals(8, Options.from(Map.of("BATON_REVISION", "7")).withRevision(8).revision());
    assertThrows(
        IllegalArgumentException.class, () -> Options.from(Map.of("BATON_REVISION", "v7")));
  }

  /** An address of the app, from wherever, means that it is served. */
  @Test
  void anAddressMeansServed() {
    assertEquals(false, Options.from(Map.of()).isServed());
    assertTrue(Options.from(Map.of("BATON_APP_ADDRESS", "127.0.0.1:0")).isServed());
    assertTrue(Options.from(Map.of()).withAppAddress("127.0.0.1:0").isServed());
    assertTrue(new Options("127.0.0.1:0", "127.0.0.1:1", null, null, Duration.ZERO).isServed());
  }
}
