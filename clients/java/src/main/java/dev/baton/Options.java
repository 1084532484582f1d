package dev.baton;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;

/**
 * Where an app listens, where its sidecar is, and how they prove themselves to each other.
 *
 * @param appAddress where the app listens: {@code host:port} or {@code unix:///path}
 * @param apiAddress where the sidecar's API is: {@code host:port} or {@code unix:///path}
 * @param appTokenFile the token that the sidecar must send to the app; null: none
 * @param apiTokenFile the token that the app sends to the sidecar; null: none
 * @param drainTime how long an app that stops waits for its sidecar to take leadership back
 */
public record Options(
    String appAddress,
    String apiAddress,
    Path appTokenFile,
    Path apiTokenFile,
    Duration drainTime) {
  /** The sidecar's own drain time (20 s) and a margin. */
  private static final Duration DRAIN_TIME = Duration.ofSeconds(25);

  /**
   * BATON_APP_ADDRESS, else 127.0.0.1:50051; BATON_API_ADDRESS, else 127.0.0.1:9401;
   * BATON_APP_TOKEN_FILE and BATON_API_TOKEN_FILE, else no token.
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
        DRAIN_TIME);
  }

  /** These options, listening elsewhere; port 0: any free one. */
  public Options withAppAddress(String address) {
    return new Options(address, apiAddress, appTokenFile, apiTokenFile, drainTime);
  }

  /** These options with the sidecar elsewhere. */
  public Options withApiAddress(String address) {
    return new Options(appAddress, address, appTokenFile, apiTokenFile, drainTime);
  }

  /** These options with a token that the sidecar must send. */
  public Options withAppTokenFile(Path file) {
    return new Options(appAddress, apiAddress, file, apiTokenFile, drainTime);
  }

  /** These options with a token to send to the sidecar. */
  public Options withApiTokenFile(Path file) {
    return new Options(appAddress, apiAddress, appTokenFile, file, drainTime);
  }

  /** These options with another time to hand leadership over in. */
  public Options withDrainTime(Duration time) {
    return new Options(appAddress, apiAddress, appTokenFile, apiTokenFile, time);
  }

  private static String given(Map<String, String> environment, String name, String otherwise) {
    String value = environment.get(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  private static Path path(String name) {
    return name.isEmpty() ? null : Path.of(name);
  }
}
