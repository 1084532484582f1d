package dev.baton;

import dev.baton.v1.Consistency;
import dev.baton.v1.StateClearRequest;
import dev.baton.v1.StateDeleteRequest;
import dev.baton.v1.StateGetRequest;
import dev.baton.v1.StateGrpc;
import dev.baton.v1.StateHasRequest;
import dev.baton.v1.StateListRequest;
import dev.baton.v1.StateListResponse;
import dev.baton.v1.StatePutRequest;
import dev.baton.v1.StateSizeRequest;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * The key-value data of the cluster; works on any pod. A write is durable before it is
 * acknowledged.
 *
 * <p>Values are byte[] or ByteString, or anything that JSON can say. Writes carry a request id, so
 * that one whose answer was lost is asked again without being done twice.
 */
public final class State {
  private static final int MODIFY_ROUNDS = 100;
  private final Connection connection;

  State(Connection connection) {
    this.connection = connection;
  }

  /** One entry; it may be older than the last write by the cache's time to live (30 s). */
  public Optional<Entry> get(String key) {
    return get(key, Consistency.CONSISTENCY_CACHED);
  }

  /** One entry that sees every write acknowledged before. */
  public Optional<Entry> getStrong(String key) {
    return get(key, Consistency.CONSISTENCY_STRONG);
  }

  /** Writes one entry. */
  public Entry put(String key, Object value) {
    return put(key, value, Put.always());
  }

  /** Writes one entry under conditions; not met: {@link BatonException.Conflict}, no change. */
  public Entry put(String key, Object value, Put put) {
    StatePutRequest.Builder request =
        StatePutRequest.newBuilder().setKey(key).setValue(Json.toBytes(value));
    request.setRequestId(
        put.requestId() == null ? UUID.randomUUID().toString() : put.requestId());
    if (put.expectedVersion() != null) {
      request.setExpectedVersion(put.expectedVersion());
    }
    if (put.ttl() != null) {
      request.setTtl(Times.message(put.ttl()));
    }
    return Entry.of(connection.ask(StateGrpc.getPutMethod(), request.build()).getEntry());
  }

  /**
   * Replaces an entry by what {@code change} makes of it, atomically. It may be called several
   * times, once for each writer that was faster.
   */
  public Entry modify(String key, Function<Optional<Entry>, ?> change) {
    return modify(key, null, change);
  }

  /** As above, for an entry that expires this long after the write; null: never. */
  public Entry modify(String key, Duration ttl, Function<Optional<Entry>, ?> change) {
    Backoff backoff = new Backoff(Duration.ofMillis(10), Duration.ofMillis(250));
    for (int round = 1; ; round++) {
      Optional<Entry> before = getStrong(key);
      Put put = Put.ifVersion(before.map(Entry::version).orElse(0L)).expiringIn(ttl);
      try {
        return put(key, change.apply(before), put);
      } catch (BatonException.Conflict conflict) {
        if (round == MODIFY_ROUNDS || !Backoff.slept(backoff.next())) {
          throw conflict;
        }
      }
    }
  }

  /** As above with values as JSON; {@code initial} if there is no entry. What was written. */
  public <T> T modify(String key, Class<T> type, T initial, UnaryOperator<T> change) {
    return modify(
            key,
            entry -> change.apply(entry.map(found -> found.json(type)).orElse(initial)))
        .json(type);
  }

  /** Deletes one entry; whether there was one. */
  public boolean delete(String key) {
    return delete(StateDeleteRequest.newBuilder().setKey(key));
  }

  /** Deletes one entry of this version; any other: {@link BatonException.Conflict}. */
  public boolean delete(String key, long expectedVersion) {
    return delete(
        StateDeleteRequest.newBuilder().setKey(key).setExpectedVersion(expectedVersion));
  }

  /** Whether there is an entry. */
  public boolean has(String key) {
    StateHasRequest request = StateHasRequest.newBuilder().setKey(key).build();
    return connection.ask(StateGrpc.getHasMethod(), request).getExists();
  }

  /** The entries whose keys begin with a prefix, by key. */
  public Stream<Entry> list(String prefix) {
    return Paging.all(
            token ->
                connection.ask(
                    StateGrpc.getListMethod(),
                    StateListRequest.newBuilder().setPrefix(prefix).setPageToken(token).build()),
            StateListResponse::getEntriesList,
            StateListResponse::getNextPageToken)
        .map(Entry::of);
  }

  /** How many entries there are whose keys begin with a prefix. */
  public long size(String prefix) {
    StateSizeRequest request = StateSizeRequest.newBuilder().setPrefix(prefix).build();
    return connection.ask(StateGrpc.getSizeMethod(), request).getSize();
  }

  /** Deletes all entries whose keys begin with a prefix, except owned keys; how many. */
  public long clear(String prefix) {
    StateClearRequest request = StateClearRequest.newBuilder().setPrefix(prefix).build();
    return connection.tell(StateGrpc.getClearMethod(), request).getDeleted();
  }

  /**
   * The changes from now on of entries whose keys begin with a prefix, deletions included; a change
   * may be told twice.
   *
   * <p>A broken stream is opened again after the last version seen. Before any is known that would
   * lose changes silently, so it is {@link BatonException.Unavailable}: watch after version 0.
   */
  public Watch<Change> watch(String prefix) {
    return new Changes(connection, prefix, null);
  }

  /** The changes after a version; 0 begins with all there is: the way to keep a full copy. */
  public Watch<Change> watch(String prefix, long afterVersion) {
    return new Changes(connection, prefix, afterVersion);
  }

  private Optional<Entry> get(String key, Consistency consistency) {
    StateGetRequest request =
        StateGetRequest.newBuilder().setKey(key).setConsistency(consistency).build();
    try {
      return Optional.of(
          Entry.of(connection.ask(StateGrpc.getGetMethod(), request).getEntry()));
    } catch (BatonException.NotFound none) {
      return Optional.empty();
    }
  }

  private boolean delete(StateDeleteRequest.Builder request) {
    return connection.tell(StateGrpc.getDeleteMethod(), request.build()).getDeleted();
  }
}
