package dev.baton;

import dev.baton.v1.CatchUp;
import dev.baton.v1.Overlap;
import dev.baton.v1.Schedule;
import dev.baton.v1.StatePolicy;
import java.time.Duration;
import java.time.Instant;

/**
 * A schedule that the app declares itself. One of the sidecar's file with the same name wins.
 *
 * <p>What is not set has the default of the file: UTC, group {@code default}, three attempts, no
 * time limit.
 */
public final class ScheduleDefinition {
  private final Schedule schedule;

  private ScheduleDefinition(Schedule.Builder schedule) {
    this.schedule = schedule.build();
  }

  /** Due as a cron expression of 5 fields says, or of 6 with seconds first. */
  public static ScheduleDefinition cron(String name, String expression) {
    return new ScheduleDefinition(Schedule.newBuilder().setName(name).setCron(expression));
  }

  /** Due once in each such time. */
  public static ScheduleDefinition every(String name, Duration time) {
    return new ScheduleDefinition(
        Schedule.newBuilder().setName(name).setEvery(Times.message(time)));
  }

  /** Due once, at this time. */
  public static ScheduleDefinition at(String name, Instant time) {
    return new ScheduleDefinition(Schedule.newBuilder().setName(name).setAt(Times.message(time)));
  }

  /** The IANA name of the time zone of a cron expression. */
  public ScheduleDefinition withTimezone(String name) {
    return new ScheduleDefinition(change().setTimezone(name));
  }

  /** The group whose leader runs it. */
  public ScheduleDefinition withGroup(String name) {
    return new ScheduleDefinition(change().setGroup(name));
  }

  /** False: its ticks are skipped. */
  public ScheduleDefinition withEnabled(boolean enabled) {
    return new ScheduleDefinition(change().setEnabled(enabled));
  }

  /** The input of each run: bytes, or anything as JSON. */
  public ScheduleDefinition withPayload(Object payload) {
    return new ScheduleDefinition(change().setPayload(Json.toBytes(payload)));
  }

  /** The content type of the payload. */
  public ScheduleDefinition withContentType(String type) {
    return new ScheduleDefinition(change().setContentType(type));
  }

  /** No tick before this time. */
  public ScheduleDefinition withStartAt(Instant time) {
    return new ScheduleDefinition(change().setStartAt(Times.message(time)));
  }

  /** No tick at or after this time. */
  public ScheduleDefinition withEndAt(Instant time) {
    return new ScheduleDefinition(change().setEndAt(Times.message(time)));
  }

  /** Stale without a success in twice this time. */
  public ScheduleDefinition withExpectedInterval(Duration time) {
    return new ScheduleDefinition(change().setExpectedInterval(Times.message(time)));
  }

  /** Older ticks are skipped. */
  public ScheduleDefinition withSkipIfOlderThan(Duration time) {
    return new ScheduleDefinition(change().setSkipIfOlderThan(Times.message(time)));
  }

  /** Which missed ticks run. */
  public ScheduleDefinition withCatchUp(CatchUp which) {
    return new ScheduleDefinition(change().setCatchUp(which));
  }

  /** All missed ticks run, but only the newest so many. */
  public ScheduleDefinition withCatchUpOfAll(int max) {
    return new ScheduleDefinition(
        change().setCatchUp(CatchUp.CATCH_UP_ALL).setCatchUpMax(max));
  }

  /** What happens to a tick that is due while an earlier one is still running. */
  public ScheduleDefinition withOverlap(Overlap overlap) {
    return new ScheduleDefinition(change().setOverlap(overlap));
  }

  /** So many attempts in all; 1: no retry. */
  public ScheduleDefinition withRetry(int attempts) {
    return new ScheduleDefinition(change().setRetry(Policies.retry(attempts)));
  }

  /** As above, with the wait before the second attempt and the longest wait. */
  public ScheduleDefinition withRetry(int attempts, Duration initial, Duration max) {
    return new ScheduleDefinition(change().setRetry(Policies.retry(attempts, initial, max)));
  }

  /** Each attempt is cancelled after this time. */
  public ScheduleDefinition withTimeout(Duration time) {
    return new ScheduleDefinition(change().setTimeout(Times.message(time)));
  }

  /** Each tick is delayed by a part of this time. */
  public ScheduleDefinition withJitter(Duration time) {
    return new ScheduleDefinition(change().setJitter(Times.message(time)));
  }

  /** Fetched after each success, for an external dead man's switch. */
  public ScheduleDefinition withPingUrl(String url) {
    return new ScheduleDefinition(change().setPingUrl(url));
  }

  /** The version of its owned state, and the state before the first run. */
  public ScheduleDefinition withState(int version, Object initial) {
    return withState(Policies.state(version, initial));
  }

  /** As above, with a JSON Schema or a time to live. */
  public ScheduleDefinition withState(StatePolicy policy) {
    return new ScheduleDefinition(change().setState(policy));
  }

  Schedule message() {
    return schedule;
  }

  private Schedule.Builder change() {
    return schedule.toBuilder();
  }
}
