package dev.baton;

import dev.baton.v1.Leader;
import dev.baton.v1.OnBecomeLeaderRequest;
import io.grpc.Status;
import java.time.Duration;

/**
 * One leadership of one group: until when it is trusted, and which attempts run in it.
 *
 * <p>Trust ends at a reading of the {@link Clock}; a renewal moves that, in either direction.
 */
final class Term {
  private static final Duration LONGEST_TRUST = Duration.ofDays(3650); // keeps sums in a long

  final ClusterContext context;
  final String group;
  final long epoch;
  final Attempts attempts = new Attempts();
  private final Clock clock;
  private Long trustedUntil; // null: the sidecar said nothing about trust
  private boolean over;
  private boolean refused;
  private volatile Stoppable hook;

  Term(ClusterContext context, Long trustedUntil, Clock clock) {
    this.context = context;
    this.group = context.group();
    this.epoch = context.epoch();
    this.trustedUntil = trustedUntil;
    this.clock = clock;
  }

  /** When the trust given by a message ends: the earlier of its two readings; null: none given. */
  static Long trustEnd(OnBecomeLeaderRequest message, long readAt, Clock clock) {
    Long end = message.hasTrustedFor() ? readAt + nanos(message.getTrustedFor()) : null;
    if (!clock.isBoottime() || !message.hasTrustedUntilBoottime()) {
      return end;
    }
    long boottime = nanos(message.getTrustedUntilBoottime());
    return end == null ? boottime : Long.valueOf(Math.min(end, boottime));
  }

  /** Whether the app may act as leader at this instant. */
  synchronized boolean leads() {
    return !over && !refused && trustedUntil != null && trustLeft() > 0;
  }

  /** Nanoseconds of trust left; without any trust time it never ends. */
  synchronized long trustLeft() {
    return trustedUntil == null ? Long.MAX_VALUE : trustedUntil - clock.latest();
  }

  /** Takes in a message of Leadership.Watch: only the newest counts. */
  synchronized void hear(Leader leader, long readAt) {
    if (!leader.getIsLeader() || leader.getEpoch() != epoch || refused) {
      trustedUntil = 0L;
      return;
    }
    OnBecomeLeaderRequest.Builder trust = OnBecomeLeaderRequest.newBuilder();
    if (leader.hasTrustedFor()) {
      trust.setTrustedFor(leader.getTrustedFor());
    }
    if (leader.hasTrustedUntilBoottime()) {
      trust.setTrustedUntilBoottime(leader.getTrustedUntilBoottime());
    }
    Long end = trustEnd(trust.build(), readAt, clock);
    trustedUntil = end == null ? Long.valueOf(0) : end;
    if (leader.getDraining()) {
      attempts.draining.countDown();
    }
  }

  /** The app did not take the term up: nothing may renew it any more. */
  synchronized void refuse() {
    refused = true;
    trustedUntil = 0L;
  }

  /** The term is over: no attempt begins any more. */
  synchronized void end() {
    over = true;
  }

  /** Whether nothing can renew this term any more. */
  synchronized boolean isClosed() {
    return over || refused;
  }

  /** Lets an attempt in; false: the term is over, or its trust has run out. */
  synchronized boolean begin(Attempt attempt) {
    return !over && trustLeft() > 0 && attempts.add(attempt);
  }

  /** The hook that opens the term is about to run; it is stopped if the term is over already. */
  synchronized void opens(Stoppable running) {
    hook = running;
    if (over) {
      running.stop();
    }
  }

  /** Stops every attempt, and the hook that opens the term if it still runs. */
  void stopWork() {
    Stoppable running = hook;
    if (running != null) {
      running.stop();
    }
    String reason = "term " + Long.toUnsignedString(epoch) + " is over";
    attempts.stop(Status.UNAVAILABLE.withDescription(reason));
  }

  private static long nanos(com.google.protobuf.Duration message) {
    Duration duration = Times.duration(message);
    return (duration.compareTo(LONGEST_TRUST) > 0 ? LONGEST_TRUST : duration).toNanos();
  }
}
