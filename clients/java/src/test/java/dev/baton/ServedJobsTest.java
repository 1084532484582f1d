package dev.baton;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Jobs of an app that the sidecar calls. */
@Timeout(240)
class ServedJobsTest {
  /** A served app executes jobs too, and stores their steps by calls. */
  @Test
  void aServedAppRunsJobs() throws Exception {
    try (Baton app = new Baton();
        FakeSidecar sidecar = FakeSidecar.beside(app)) {
      app.job(
          "send-mail",
          context -> Result.of(context.step("send", String.class, () -> "sent")));
      long id = app.jobs().submit("send-mail", null).id();
      var job = app.jobs().awaitEnd(id, Duration.ofSeconds(120));
      assertEquals("\"sent\"", job.getResult().toStringUtf8());
      assertEquals(1, sidecar.runs.get(id).checkpoints().size());
    }
  }
}
