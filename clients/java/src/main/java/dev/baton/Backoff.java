package dev.baton;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Waits that double up to a longest one, each shortened by up to half at random. */
final class Backoff {
  private final long firstMillis;
  private final long longestMillis;
  private long nextMillis;

  Backoff(Duration first, Duration longest) {
    this.firstMillis = first.toMillis();
    this.longestMillis = longest.toMillis();
    reset();
  }

  /** From 100 ms to 2 s. */
  static Backoff ofCalls() {
    return new Backoff(Duration.ofMillis(100), Duration.ofSeconds(2));
  }

  /** How long to wait now. */
  Duration next() {
    long wait = nextMillis;
    nextMillis = Math.min(2 * wait, longestMillis);
    return Duration.ofMillis(ThreadLocalRandom.current().nextLong(wait / 2, wait + 1));
  }

  /** Waits so long; false: the thread was interrupted, and its flag is still set. */
  static boolean slept(Duration time) {
    try {
      Thread.sleep(time.toMillis());
      return true;
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Begins anew: it works again. */
  void reset() {
    nextMillis = firstMillis;
  }
}
