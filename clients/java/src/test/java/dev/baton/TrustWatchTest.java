package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How a served app learns until when it may lead. */
@Timeout(240)
class TrustWatchTest {
  private static final Duration LONG = Duration.ofMinutes(10);

  /** G1: while the sidecar renews, the app leads beyond the trust it was first given. */
  @Test
  void trustIsRenewedByTheWatchEvenWhenItBreaks() throws Exception {
    try (Baton app = new Baton();
        FakeSidecar sidecar = FakeSidecar.beside(app)) {
      sidecar.lead("default", Duration.ofMillis(2500));
      for (int i = 0; i < 40; i++) {
        Thread.sleep(100);
        assertTrue(app.isLeader());
        if (i == 10) {
          sidecar.breakWatches();
        }
      }
    }
  }

  /** The client reconnects by itself: an API that was away ends trust once it is back. */
  @Test
  void theWatchSurvivesASidecarThatComesLate() throws Exception {
    String address;
    try (FakeSidecar gone = new FakeSidecar()) {
      address = gone.address();
    }
    try (Baton app = new Baton();
        FakeSidecar caller = new FakeSidecar()) {
      app.start(caller.options().withApiAddress(address));
      caller.callAppAt(app.address());
      long epoch = caller.lead("default", LONG);
      assertTrue(app.isLeader());
      try (FakeSidecar late = new FakeSidecar(address, null)) {
        late.renews(epoch + 1, LONG); // of another term: only a watch can tell
        eventually(() -> !app.isLeader());
      }
    }
  }
}
