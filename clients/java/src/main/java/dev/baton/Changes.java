package dev.baton;

import dev.baton.v1.StateGrpc;
import dev.baton.v1.StateWatchRequest;
import io.grpc.Status;
import java.util.Iterator;
import java.util.concurrent.atomic.AtomicReference;

/** Changes of state, opened again after the last version seen when the stream breaks. */
final class Changes extends Watch<Change> {
  private final AtomicReference<Long> after;
  private final Backoff backoff = Backoff.ofCalls();

  Changes(Connection connection, String prefix, Long afterVersion) {
    this(connection, prefix, new AtomicReference<>(afterVersion));
  }

  private Changes(Connection connection, String prefix, AtomicReference<Long> after) {
    super(() -> open(connection, prefix, after.get()));
    this.after = after;
  }

  @Override
  public boolean hasNext() {
    while (true) {
      try {
        return super.hasNext();
      } catch (BatonException broken) { // also one that is typed, as StateLoadFailed
        boolean away = broken.code().orElse(null) == Status.Code.UNAVAILABLE;
        if (!away || after.get() == null || !Backoff.slept(backoff.next())) {
          throw broken;
        }
        reopen();
      }
    }
  }

  @Override
  public Change next() {
    Change change = super.next();
    backoff.reset();
    long version = change.entry().version();
    after.updateAndGet(seen -> seen == null ? version : Math.max(seen, version));
    return change;
  }

  private static Iterator<Change> open(Connection connection, String prefix, Long after) {
    StateWatchRequest.Builder request = StateWatchRequest.newBuilder().setPrefix(prefix);
    if (after != null) {
      request.setAfterVersion(after);
    }
    var messages = connection.stream(StateGrpc.getWatchMethod(), request.build());
    return Paging.mapped(messages, Change::of);
  }
}
