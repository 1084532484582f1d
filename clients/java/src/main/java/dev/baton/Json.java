package dev.baton;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.ToNumberPolicy;
import com.google.protobuf.ByteString;
import java.nio.charset.StandardCharsets;

/**
 * How values travel: bytes as they are, everything else as JSON.
 *
 * <p>A stored step must come back as the kind it was. JSON never begins with a NUL byte, so that
 * byte marks raw bytes; every client library stores steps so, and may go on with those of another.
 */
final class Json {
  private static final ByteString RAW = ByteString.copyFrom(new byte[] {0});
  private static final Gson GSON =
      new GsonBuilder()
          .disableHtmlEscaping()
          .setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE)
          .create();

  private Json() {}

  /** The value as sent: byte[] and ByteString unchanged, anything else as compact JSON. */
  static ByteString toBytes(Object value) {
    if (value instanceof ByteString bytes) {
      return bytes;
    }
    if (value instanceof byte[] bytes) {
      return ByteString.copyFrom(bytes);
    }
    return ByteString.copyFrom(GSON.toJson(value), StandardCharsets.UTF_8);
  }

  /** The value as a type: byte[] and ByteString unchanged, else from JSON; null if it is empty. */
  static <T> T fromBytes(ByteString value, Class<T> type) {
    if (type == ByteString.class) {
      return type.cast(value);
    }
    if (type == byte[].class) {
      return type.cast(value.toByteArray());
    }
    return GSON.fromJson(value.toStringUtf8(), type);
  }

  /** As above; what is missing, or fields that an object does not have, come from `initial`. */
  static <T> T fromBytes(ByteString value, Class<T> type, T initial) {
    if (value.isEmpty()) {
      return initial;
    }
    if (isRaw(type)) {
      return fromBytes(value, type);
    }
    JsonElement found = GSON.fromJson(value.toStringUtf8(), JsonElement.class);
    JsonElement defaults = GSON.toJsonTree(initial);
    if (!found.isJsonObject() || !defaults.isJsonObject()) {
      return GSON.fromJson(found, type);
    }
    JsonObject merged = defaults.getAsJsonObject();
    found.getAsJsonObject().entrySet().forEach(it -> merged.add(it.getKey(), it.getValue()));
    return GSON.fromJson(merged, type);
  }

  /** A step's result as it is stored. */
  static ByteString toStored(Object value) {
    boolean raw = value instanceof ByteString || value instanceof byte[];
    return raw ? RAW.concat(toBytes(value)) : toBytes(value);
  }

  /** A step's result as it was. */
  static <T> T fromStored(ByteString stored, Class<T> type) {
    return fromBytes(stored.startsWith(RAW) ? stored.substring(1) : stored, type);
  }

  private static boolean isRaw(Class<?> type) {
    return type == ByteString.class || type == byte[].class;
  }
}
