package dev.baton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.baton.v1.Leader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Terms and trust on a clock of our own. */
class TermsTest {
  private final ConnectionTest.ManualClock clock = new ConnectionTest.ManualClock();
  private final Terms terms = new Terms(clock);

  private static ClusterContext context(long epoch) {
    return ClusterContext.of(FakeSidecar.context("g", epoch, true));
  }

  private static Leader leader(long epoch, long trustedNanos) {
    return Leader.newBuilder()
        .setIsLeader(true)
        .setEpoch(epoch)
        .setTrustedFor(Times.message(Duration.ofNanos(trustedNanos)))
        .build();
  }

  /** G1: trust ends with its last nanosecond, and only the newest message counts. */
  @Test
  void trust() {
    Term term = terms.open(context(5), 100L).get();
    clock.now = 99;
    assertTrue(term.leads());
    clock.now = 100;
    assertFalse(term.leads());
    term.hear(leader(5, 50), 100);
    assertTrue(term.leads());
    term.hear(leader(5, 10), 100); // sooner: it counts too
    clock.now = 110;
    assertFalse(term.leads());
    term.hear(leader(6, 50), 110);
    assertFalse(term.leads());
    term.hear(leader(5, 50).toBuilder().setIsLeader(false).build(), 110);
    assertFalse(term.leads());
    term.hear(leader(5, 50), 110);
    assertTrue(term.leads());
    term.hear(leader(5, 50).toBuilder().clearTrustedFor().build(), 110);
    assertFalse(term.leads());
  }

  /** Without a word about trust the app runs what it is given, but does not lead by itself. */
  @Test
  void noTrustTime() {
    Term term = terms.open(context(5), null).get();
    assertFalse(term.leads());
    assertTrue(term.trustLeft() > 0);
  }

  /** Epochs are unsigned, per group, and never come back. */
  @Test
  void epochs() {
    assertTrue(terms.open(context(-1), null).isPresent()); // the highest there is
    assertFalse(terms.isNews("g", Long.MAX_VALUE));
    assertTrue(terms.isNews("other", 1));
    assertFalse(terms.isNews("other", 0));
    assertTrue(terms.close("g", 7).isEmpty());
    assertEquals(-1, terms.close("g", 0).get().epoch);
    assertTrue(terms.open(context(Long.MAX_VALUE), null).isEmpty());
    assertTrue(terms.all().isEmpty());
  }

  /** The clock shows the boot time, which the sidecar's readings are compared with. */
  @Test
  @EnabledOnOs(OS.LINUX)
  void boottime() throws Exception {
    double before = uptime();
    double early = Clock.SYSTEM.earliest() / 1e9;
    double late = Clock.SYSTEM.latest() / 1e9;
    assertTrue(Clock.SYSTEM.isBoottime());
    assertTrue(before <= early + 0.001);
    assertTrue(early < late);
    assertTrue(late <= uptime() + 0.011);
  }

  private static double uptime() throws Exception {
    return Double.parseDouble(Files.readString(Path.of("/proc/uptime")).split(" ")[0]);
  }
}
