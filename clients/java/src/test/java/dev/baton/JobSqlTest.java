package dev.baton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.baton.v1.JobConflict;
import dev.baton.v1.JobPriority;
import java.lang.reflect.Proxy;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Jobs submitted by SQL, on a connection that records what it is asked. */
@Timeout(240)
class JobSqlTest {
  private final List<String> asked = new ArrayList<>();
  private final List<Object> values = new ArrayList<>();
  private final java.sql.Connection connection =
      fake(java.sql.Connection.class, this::onConnection);

  private static <T> T fake(Class<T> type, BiFunction<String, Object[], Object> answers) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> answers.apply(method.getName(), arguments)));
  }

  private Object onConnection(String method, Object[] arguments) {
    asked.add(method + " " + arguments[0]);
    return fake(PreparedStatement.class, this::onStatement);
  }

  private Object onStatement(String method, Object[] arguments) {
    if (method.equals("setString")) {
      values.add(arguments[1]);
      assertEquals(values.size(), arguments[0]);
      return null;
    }
    if (method.equals("executeQuery")) {
      return fake(ResultSet.class, this::onResult);
    }
    return closed(method);
  }

  private Object onResult(String method, Object[] arguments) {
    return switch (method) {
      case "next" -> true;
      case "getLong" -> 4711L;
      default -> closed(method);
    };
  }

  private Object closed(String method) {
    assertEquals("close", method);
    asked.add(method);
    return null;
  }

  /** Nothing is begun, committed or closed but the statement: the transaction is the caller's. */
  @Test
  void onlyWhatIsSetIsAnArgument() throws Exception {
    long id = Jobs.enqueue(connection, "orders", NewJob.named("send-mail", Map.of("to", "a@b")));
    assertEquals(4711, id);
    String sql =
        "SELECT baton.enqueue(cluster => ?::text, name => ?::text, payload => ?::jsonb)";
    assertEquals(List.of("prepareStatement " + sql, "close", "close"), asked);
    assertEquals(List.of("orders", "send-mail", "{\"to\":\"a@b\"}"), values);
  }

  /** Every argument has its name and its type. */
  @Test
  void everyOptionHasItsArgument() throws Exception {
    NewJob job =
        NewJob.named("m")
            .withContentType("text/plain")
            .withQueue("mail")
            .withPriority(JobPriority.JOB_PRIORITY_CRITICAL)
            .withKey("k")
            .withRetry(5)
            .withLabel("shop", "berlin")
            .withBatch("b")
            .withDelay(Duration.ofMillis(1500))
            .withExpiresAt(Instant.parse("2027-01-01T00:00:00Z"))
            .withTimeout(Duration.ofMinutes(2))
            .withUnique("u", Duration.ofHours(1), JobConflict.JOB_CONFLICT_REPLACE);
    Jobs.enqueue(connection, "orders", job);
    String arguments =
        "cluster => ?::text, name => ?::text, payload => ?::jsonb, content_type => ?::text, "
            + "queue => ?::text, priority => ?::text, key => ?::text, attempts => ?::int, "
            + "labels => ?::jsonb, batch => ?::text, delay => ?::interval, "
            + "expires_at => ?::timestamptz, timeout => ?::interval, unique_key => ?::text, "
            + "unique_window => ?::interval, on_conflict => ?::text";
    assertEquals("prepareStatement SELECT baton.enqueue(" + arguments + ")", asked.get(0));
    assertEquals(
        List.of(
            "orders", "m", "null", "text/plain", "mail", "critical", "k", "5",
            "{\"shop\":\"berlin\"}", "b", "PT1.5S", "2027-01-01T00:00:00Z", "PT2M", "u", "PT1H",
            "replace"),
        values);
  }

  /** The function has no argument for it: said so, instead of forgotten. */
  @Test
  void whatSqlCannotSayIsRefused() {
    NewJob backoff = NewJob.named("m").withRetry(3, Duration.ZERO, Duration.ZERO);
    assertThrows(
        IllegalArgumentException.class, () -> Jobs.enqueue(connection, "orders", backoff));
    NewJob binary = NewJob.named("m", new byte[] {-1});
    assertThrows(
        IllegalArgumentException.class, () -> Jobs.enqueue(connection, "orders", binary));
    assertEquals(List.of(), asked);
  }

  /** An attached app knows its cluster, and its handlers' defaults. */
  @Test
  void anAppKnowsItsCluster() throws Exception {
    try (Baton app = new Baton();
        FakeSidecar sidecar = new FakeSidecar()) {
      app.job(NewJob.named("send-mail").withQueue("mail"), context -> null);
      try (Sidecar lonely = Sidecar.connect(sidecar.attachOptions())) {
        assertThrows(
            BatonException.NotConnected.class,
            () -> lonely.jobs().enqueue(connection, NewJob.named("send-mail")));
      }
      app.attach(sidecar.attachOptions());
      app.awaitAttached(Duration.ofSeconds(60));
      enqueueOne(app);
      assertEquals(List.of("test", "send-mail", "null", "mail"), values);
    }
  }

  private void enqueueOne(Baton app) throws SQLException {
    app.jobs().enqueue(connection, NewJob.named("send-mail"));
  }
}
