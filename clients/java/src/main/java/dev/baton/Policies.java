package dev.baton;

import dev.baton.v1.RetryPolicy;
import dev.baton.v1.StatePolicy;
import java.time.Duration;

/** Parts that definitions of schedules, singletons and jobs share. */
final class Policies {
  private Policies() {}

  static RetryPolicy retry(int attempts) {
    return RetryPolicy.newBuilder().setAttempts(attempts).build();
  }

  static RetryPolicy retry(int attempts, Duration initial, Duration max) {
    return RetryPolicy.newBuilder()
        .setAttempts(attempts)
        .setInitial(Times.message(initial))
        .setMax(Times.message(max))
        .build();
  }

  static StatePolicy state(int version, Object initial) {
    return StatePolicy.newBuilder()
        .setVersion(version)
        .setInitial(Json.toBytes(initial))
        .build();
  }
}
