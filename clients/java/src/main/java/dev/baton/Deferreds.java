package dev.baton;

import dev.baton.v1.DeferredsAwaitRequest;
import dev.baton.v1.DeferredsCompleteRequest;
import dev.baton.v1.DeferredsCreateRequest;
import dev.baton.v1.DeferredsFailRequest;
import dev.baton.v1.DeferredsGetRequest;
import dev.baton.v1.DeferredsGrpc;
import dev.baton.v1.RunRef;
import java.time.Duration;

/** Makes, awaits and completes durable promises; works on any pod. */
public final class Deferreds {
  private static final Duration AWAIT_TIME = Duration.ofSeconds(30);
  private final Connection connection;

  Deferreds(Connection connection) {
    this.connection = connection;
  }

  /** The deferred of that name, of no run: made, or the same one again. */
  public Deferred create(String name) {
    return create(name, null, null);
  }

  /** As above; it expires this long after it was first made. */
  public Deferred create(String name, Duration ttl) {
    return create(name, ttl, null);
  }

  /** The deferred with a token that was handed out. */
  public Deferred of(String token) {
    return new Deferred(token, this);
  }

  /** Completes it with JSON or bytes; the first completion stands, another is AlreadyExists. */
  public dev.baton.v1.Deferred complete(String token, Object value) {
    DeferredsCompleteRequest request =
        DeferredsCompleteRequest.newBuilder()
            .setToken(token)
            .setValue(Json.toBytes(value))
            .build();
    return connection.ask(DeferredsGrpc.getCompleteMethod(), request).getDeferred();
  }

  /** Completes it with an error, for whoever awaits it. */
  public dev.baton.v1.Deferred fail(String token, String error) {
    DeferredsFailRequest request =
        DeferredsFailRequest.newBuilder().setToken(token).setError(error).build();
    return connection.ask(DeferredsGrpc.getFailMethod(), request).getDeferred();
  }

  /** The deferred as it is now. */
  public dev.baton.v1.Deferred get(String token) {
    DeferredsGetRequest request = DeferredsGetRequest.newBuilder().setToken(token).build();
    return connection.ask(DeferredsGrpc.getGetMethod(), request).getDeferred();
  }

  /** Of a run, or of none; `ttl` may be null. */
  Deferred create(String name, Duration ttl, RunRef run) {
    DeferredsCreateRequest.Builder request = DeferredsCreateRequest.newBuilder().setName(name);
    if (ttl != null) {
      request.setTtl(Times.message(ttl));
    }
    if (run != null) {
      request.setRun(run);
    }
    return of(connection.ask(DeferredsGrpc.getCreateMethod(), request.build()).getToken());
  }

  /** The deferred once it is no longer pending, however long that takes. */
  dev.baton.v1.Deferred await(String token) throws InterruptedException {
    DeferredsAwaitRequest request =
        DeferredsAwaitRequest.newBuilder()
            .setToken(token)
            .setTimeout(Times.message(AWAIT_TIME))
            .build();
    Duration time = AWAIT_TIME.multipliedBy(3).dividedBy(2);
    Backoff backoff = Backoff.ofCalls();
    while (true) {
      try {
        return connection.ask(DeferredsGrpc.getAwaitMethod(), request, time).getDeferred();
      } catch (BatonException.Unavailable | BatonException.DeadlineExceeded askAgain) {
        Thread.sleep(backoff.next().toMillis());
      } catch (BatonException.Cancelled stop) {
        if (Thread.interrupted()) {
          throw new InterruptedException("interrupted while a deferred was awaited");
        }
        throw stop;
      }
    }
  }
}
