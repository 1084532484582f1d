package dev.baton;

import com.google.protobuf.ByteString;
import dev.baton.v1.DeferredState;

/** A durable promise: hand out {@link #token}, then await it. */
public final class Deferred {
  private final String token;
  private final Deferreds deferreds;

  Deferred(String token, Deferreds deferreds) {
    this.token = token;
    this.deferreds = deferreds;
  }

  /** A secret: whoever has it may complete the deferred. */
  public String token() {
    return token;
  }

  /**
   * Waits for it, however long that takes: its value from JSON (or as byte[] or ByteString), or a
   * {@link BatonException.DeferredFailed}.
   */
  public <T> T await(Class<T> type) throws InterruptedException {
    dev.baton.v1.Deferred ended = deferreds.await(token);
    if (ended.getState() != DeferredState.DEFERRED_STATE_COMPLETED) {
      String error = ended.getError();
      throw new BatonException.DeferredFailed(error.isEmpty() ? "expired" : error);
    }
    return Json.fromBytes(ended.getValue(), type);
  }

  /** Waits for it; its value as bytes. */
  public ByteString await() throws InterruptedException {
    return await(ByteString.class);
  }
}
