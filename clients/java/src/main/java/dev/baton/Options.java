package dev.baton;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;

/**
 * Where the sidecar is, how an app and its sidecar prove themselves to each other, and how much
 * work the app takes.
 *
 * @param appAddress where a served app listens: {@code host:port} or {@code unix:///path}
 * @param apiAddress where the sidecar's API is: {@code host:port} or {@code unix:///path}
 * @param appTokenFile the token that the sidecar must send to a served app; null: none
 * @param apiTokenFile the token that the app sends to the sidecar; null: none
 * @param drainTime how long an app that stops waits for its runs and the end of its leadership
 * @param isServed whether {@link Baton#run(Options)} serves the app instead of attaching it
 * @param capacity how many runs an attached app takes at once, singletons not counted
 * @param hidesErrors whether only the type of an unexpected exception leaves the process
 * @param revision orders the builds of an app that declares schedules; 0: by their first start
 */
public record Options(
    String appAddress,
    String apiAddress,
    Path appTokenFile,
    Path apiTokenFile,
    Duration drainTime,
    boolean isServed,
    int capacity,
    boolean hidesErrors,
    long revision) {
  /** The sidecar's own drain time (20 s) and a margin. */
  private static final Duration DRAIN_TIME = Duration.ofSeconds(25);

  /** A thread each. */
  private static final int CAPACITY = 200;

  private static final int CAPACITY_MAX = 10_000;

  /** Refuses a capacity that no sidecar accepts. */
  public Options {
    if (capacity < 1 || capacity > CAPACITY_MAX) {
      throw new IllegalArgumentException("capacity: must be 1 to " + CAPACITY_MAX);
    }
  }

  /** The options of an app that is served at this address. */
  public Options(
      String appAddress,
      String apiAddress,
      Path appTokenFile,
      Path apiTokenFile,
      Duration drainTime) {
    this(
        appAddress, apiAddress, appTokenFile, apiTokenFile, drainTime, true, CAPACITY, false, 0);
  }

  /**
   * BATON_API_ADDRESS, else 127.0.0.1:9401; BATON_APP_ADDRESS, else 127.0.0.1:50051 and the app is
   * attached, not served; BATON_APP_TOKEN_FILE and BATON_API_TOKEN_FILE, else no token;
   * BATON_REVISION, else 0.
   */
  public static Options fromEnvironment() {
    return from(System.getenv());
  }

  static Options from(Map<String, String> environment) {
    return new Options(
        given(environment, "BATON_APP_ADDRESS", "127.0.0.1:50051"),
        given(environment, "BATON_API_ADDRESS", "127.0.0.1:9401"),
        path(given(environment, "BATON_APP_TOKEN_FILE", "")),
        path(given(environment, "BATON_API_TOKEN_FILE", "")),
        DRAIN_TIME,
        !given(environment, "BATON_APP_ADDRESS", "").isEmpty(),
        CAPACITY,
        false,
        revision(given(environment, "BATON_REVISION", "0")));
  }

  /** These options for an app that is served, at this address; port 0: any free one. */
  public Options withAppAddress(String address) {
    return new Options(
        address, apiAddress, appTokenFile, apiTokenFile, drainTime,
        true, capacity, hidesErrors, revision);
  }

  /** These options with the sidecar elsewhere. */
  public Options withApiAddress(String address) {
    return new Options(
        appAddress, address, appTokenFile, apiTokenFile, drainTime,
        isServed, capacity, hidesErrors, revision);
  }

  /** These options with a token that the sidecar must send. */
  public Options withAppTokenFile(Path file) {
    return new Options(
        appAddress, apiAddress, file, apiTokenFile, drainTime,
        isServed, capacity, hidesErrors, revision);
  }

  /** These options with a token to send to the sidecar. */
  public Options withApiTokenFile(Path file) {
    return new Options(
        appAddress, apiAddress, appTokenFile, file, drainTime,
        isServed, capacity, hidesErrors, revision);
  }

  /** These options with another time to finish runs and hand leadership over in. */
  public Options withDrainTime(Duration time) {
    return new Options(
        appAddress, apiAddress, appTokenFile, apiTokenFile, time,
        isServed, capacity, hidesErrors, revision);
  }

  /** These options with another number of runs at once, 1 to 10,000. */
  public Options withCapacity(int runs) {
    return new Options(
        appAddress, apiAddress, appTokenFile, apiTokenFile, drainTime,
        isServed, runs, hidesErrors, revision);
  }

  /** These options, with or without the text of unexpected exceptions in the records of runs. */
  public Options withHiddenErrors(boolean hidden) {
    return new Options(
        appAddress, apiAddress, appTokenFile, apiTokenFile, drainTime,
        isServed, capacity, hidden, revision);
  }

  /** These options for the build with this number: the higher one wins in a rollout. */
  public Options withRevision(long number) {
    return new Options(
        appAddress, apiAddress, appTokenFile, apiTokenFile, drainTime,
        isServed, capacity, hidesErrors, number);
  }

  private static String given(Map<String, String> environment, String name, String otherwise) {
    String value = environment.get(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  private static Path path(String name) {
    return name.isEmpty() ? null : Path.of(name);
  }

  private static long revision(String number) {
    try {
      return Long.parseUnsignedLong(number);
    } catch (NumberFormatException error) {
      throw new IllegalArgumentException("BATON_REVISION: not a number: " + number, error);
    }
  }
}
