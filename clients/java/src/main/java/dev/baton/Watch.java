package dev.baton;

import io.grpc.Context;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Supplier;

/**
 * Messages of the sidecar as they come. {@link #hasNext} waits for the next one; it is false only
 * after {@link #close}, and throws a {@link BatonException} when the stream breaks.
 *
 * @param <T> what is told
 */
public class Watch<T> implements Iterator<T>, AutoCloseable {
  private final Supplier<Iterator<T>> source;
  private final Context.CancellableContext life = Context.ROOT.withCancellation();
  private Iterator<T> messages;
  private volatile boolean closed;

  Watch(Supplier<Iterator<T>> source) {
    this.source = source;
    reopen();
  }

  @Override
  public boolean hasNext() {
    try {
      if (closed || messages.hasNext()) {
        return !closed;
      }
      throw Status.UNAVAILABLE.withDescription("the sidecar ended the stream").asRuntimeException();
    } catch (StatusRuntimeException error) {
      if (closed) {
        return false;
      }
      throw Errors.of(error, false);
    }
  }

  @Override
  public T next() {
    if (!hasNext()) {
      throw new NoSuchElementException("the watch was closed");
    }
    return messages.next();
  }

  /** Ends the stream; may be called from any thread. */
  @Override
  public void close() {
    closed = true;
    life.cancel(null);
  }

  /** Opens the stream (again). */
  final void reopen() {
    Context outside = life.attach(); // the call lives and ends with this context
    try {
      messages = source.get();
    } finally {
      life.detach(outside);
    }
  }
}
