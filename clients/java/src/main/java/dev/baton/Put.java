package dev.baton;

import java.time.Duration;

/**
 * Under which conditions an entry is written, and for how long.
 *
 * @param expectedVersion write only over this version; 0: only if there is none; null: in any case
 * @param ttl gone this long after the write; null: never
 * @param requestId the same id with the same key, within an hour, writes once; null: one is made
 */
public record Put(Long expectedVersion, Duration ttl, String requestId) {
  /** In any case, to stay. */
  public static Put always() {
    return new Put(null, null, null);
  }

  /** Only over this version; else a {@link BatonException.Conflict}, and nothing is changed. */
  public static Put ifVersion(long version) {
    return new Put(version, null, null);
  }

  /** Only if there is no entry. */
  public static Put ifAbsent() {
    return ifVersion(0);
  }

  /** The same, for this long. */
  public Put expiringIn(Duration time) {
    return new Put(expectedVersion, time, requestId);
  }

  /** The same, under an id of the caller's own. */
  public Put withRequestId(String id) {
    return new Put(expectedVersion, ttl, id);
  }
}
