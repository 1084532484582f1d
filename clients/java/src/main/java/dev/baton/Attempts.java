package dev.baton;

import io.grpc.Status;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The attempts that run in one term, or the jobs that run in one app. */
final class Attempts {
  /** Opened when the attempts should come to an end by themselves. */
  final CountDownLatch draining = new CountDownLatch(1);

  private final Set<Attempt> running = new HashSet<>();

  synchronized boolean add(Attempt attempt) {
    return running.add(attempt);
  }

  /** An attempt has ended. */
  synchronized void ended(Attempt attempt) {
    running.remove(attempt);
    notifyAll();
  }

  /** Stops every attempt; the status is the answer of those that give none. */
  synchronized void stop(Status reason) {
    running.forEach(attempt -> attempt.stop(reason));
  }

  /** Waits at most so long until no attempt runs; whether that is so. */
  synchronized boolean await(Duration time) throws InterruptedException {
    long end = System.nanoTime() + time.toNanos();
    while (!running.isEmpty() && System.nanoTime() - end < 0) {
      TimeUnit.NANOSECONDS.timedWait(this, end - System.nanoTime());
    }
    return running.isEmpty();
  }

  /** Waits until no attempt runs. */
  synchronized void await() throws InterruptedException {
    while (!running.isEmpty()) {
      wait();
    }
  }
}
