package dev.baton;

import com.google.protobuf.ByteString;
import java.time.Instant;
import java.util.Optional;

/**
 * One key with its value.
 *
 * @param key unique in the cluster
 * @param value as it was written
 * @param version rises with every write of the key and never comes back
 * @param updatedAt when it was written
 * @param expiresAt when it will be gone; empty: never
 */
public record Entry(
    String key, ByteString value, long version, Instant updatedAt, Optional<Instant> expiresAt) {

  /** The value from JSON; null if it is empty. */
  public <T> T json(Class<T> type) {
    return Json.fromBytes(value, type);
  }

  static Entry of(dev.baton.v1.Entry message) {
    return new Entry(
        message.getKey(),
        message.getValue(),
        message.getVersion(),
        Times.instant(message.getUpdatedAt()),
        message.hasExpiresAt()
            ? Optional.of(Times.instant(message.getExpiresAt()))
            : Optional.empty());
  }
}
