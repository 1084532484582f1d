package dev.baton;

import dev.baton.v1.Hello;
import dev.baton.v1.Welcome;
import io.grpc.Status;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/** Keeps the app attached to its sidecar: opens the stream, and again whenever it ends. */
final class Attachment implements Link {
  private static final System.Logger LOG = System.getLogger("baton");
  private static final Duration SLOW = Duration.ofSeconds(2);

  private final AppCalls app;
  private final Supplier<Hello> hello;
  private final CountDownLatch closing = new CountDownLatch(1);
  private final CountDownLatch attachedOnce = new CountDownLatch(1);
  private volatile boolean leaving;
  private volatile WorkStream current;
  private volatile Welcome welcome;
  private String reported = "";

  Attachment(AppCalls app, Supplier<Hello> hello) {
    this.app = app;
    this.hello = hello;
  }

  void start() {
    Threads.daemons("baton-attach").newThread(this::stayAttached).start();
  }

  /** Whether the sidecar has accepted this process within this time. */
  boolean await(Duration time) throws InterruptedException {
    return attachedOnce.await(time.toNanos(), TimeUnit.NANOSECONDS);
  }

  /** The last welcome; empty if there was none yet. */
  Optional<Welcome> welcome() {
    return Optional.ofNullable(welcome);
  }

  @Override
  public String address() {
    return "";
  }

  @Override
  public void leave() {
    leaving = true;
    WorkStream stream = current;
    if (stream != null) {
      stream.leave();
    }
  }

  @Override
  public void closing() {
    leave();
  }

  @Override
  public void close(Duration time) throws InterruptedException {
    closing.countDown();
    WorkStream stream = current;
    if (stream == null) {
      return;
    }
    stream.finish();
    try {
      stream.ended.get(time.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException late) {
      LOG.log(Level.DEBUG, "the sidecar has not closed the stream within {0}", time);
    } catch (ExecutionException impossible) {
      throw new IllegalStateException(impossible);
    } finally {
      stream.cancel();
    }
  }

  private void stayAttached() {
    Backoff backoff = Backoff.ofCalls();
    try {
      while (!leaving && closing.getCount() > 0) {
        Status status = attach(backoff);
        if (!leaving) {
          report(status);
        }
        Duration pause = isRefusal(status) ? SLOW : backoff.next();
        closing.await(pause.toNanos(), TimeUnit.NANOSECONDS);
      }
    } catch (InterruptedException impossible) {
      Thread.currentThread().interrupt(); // the thread is known to nobody
    }
  }

  /** Opens one stream; returns how it ended. */
  private Status attach(Backoff backoff) throws InterruptedException {
    WorkStream stream = new WorkStream(app, hello.get());
    stream.welcomed.thenAccept(accepted -> welcomed(accepted, backoff));
    stream.open();
    current = stream;
    if (leaving) { // since it was checked last
      stream.leave();
    }
    if (closing.getCount() == 0) {
      stream.cancel();
    }
    try {
      return stream.ended.get();
    } catch (ExecutionException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private void welcomed(Welcome accepted, Backoff backoff) {
    welcome = accepted;
    backoff.reset();
    reported = "";
    LOG.log(
        Level.INFO,
        "attached to {0} of cluster {1}",
        accepted.getRunnerId(),
        accepted.getCluster());
    attachedOnce.countDown();
  }

  /** What does not pass by itself: somebody has to change something. */
  private static boolean isRefusal(Status status) {
    return switch (status.getCode()) {
      case UNAUTHENTICATED, INVALID_ARGUMENT, UNIMPLEMENTED, PERMISSION_DENIED -> true;
      default -> false;
    };
  }

  /** Logs why the app is not attached, once until that changes. */
  private void report(Status status) {
    String detail = status.getDescription() == null ? "" : ": " + status.getDescription();
    String text = advice(status) + ": " + status.getCode() + detail;
    if (!text.equals(reported)) {
      reported = text;
      LOG.log(isRefusal(status) ? Level.ERROR : Level.WARNING, text);
    }
  }

  private static String advice(Status status) {
    return switch (status.getCode()) {
      case UNAUTHENTICATED -> "the sidecar refused the token (BATON_API_TOKEN_FILE)";
      case INVALID_ARGUMENT -> "the sidecar refused what this app declares";
      case UNIMPLEMENTED ->
          "the sidecar is too old to attach to: upgrade it, or serve(address) instead";
      default -> "not attached to the sidecar, trying again";
    };
  }
}
