package dev.baton;

import com.google.protobuf.ByteString;
import dev.baton.v1.StateClearRequest;
import dev.baton.v1.StateClearResponse;
import dev.baton.v1.StateDeleteRequest;
import dev.baton.v1.StateDeleteResponse;
import dev.baton.v1.StateGetRequest;
import dev.baton.v1.StateGetResponse;
import dev.baton.v1.StateGrpc;
import dev.baton.v1.StateHasRequest;
import dev.baton.v1.StateHasResponse;
import dev.baton.v1.StateListRequest;
import dev.baton.v1.StateListResponse;
import dev.baton.v1.StatePutRequest;
import dev.baton.v1.StatePutResponse;
import dev.baton.v1.StateSizeRequest;
import dev.baton.v1.StateSizeResponse;
import dev.baton.v1.StateWatchRequest;
import dev.baton.v1.StateWatchResponse;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** State in memory: versions, compare-and-set, request ids, pages of two, watches. */
final class FakeState extends StateGrpc.StateImplBase {
  private final FakeSidecar sidecar;
  private final TreeMap<String, dev.baton.v1.Entry> entries = new TreeMap<>();
  private final Map<String, dev.baton.v1.Entry> byRequest = new HashMap<>();
  private final List<StateWatchResponse> history = new ArrayList<>();
  private final List<StreamObserver<StateWatchResponse>> watchers = new ArrayList<>();
  private long version;

  FakeState(FakeSidecar sidecar) {
    this.sidecar = sidecar;
  }

  synchronized ByteString value(String key) {
    return entries.getOrDefault(key, dev.baton.v1.Entry.getDefaultInstance()).getValue();
  }

  synchronized dev.baton.v1.Entry write(String key, ByteString value) {
    dev.baton.v1.Entry entry =
        dev.baton.v1.Entry.newBuilder()
            .setKey(key)
            .setValue(value)
            .setVersion(++version)
            .setUpdatedAt(Times.message(Instant.now()))
            .build();
    entries.put(key, entry);
    tell(StateWatchResponse.newBuilder().setPut(entry).build());
    return entry;
  }

  /** Breaks every stream, as a restart would. */
  void breakWatches() {
    breakWatches(Status.UNAVAILABLE.withDescription("refused").asRuntimeException());
  }

  /** Breaks every stream with an error. */
  synchronized void breakWatches(StatusRuntimeException error) {
    watchers.forEach(watcher -> watcher.onError(error));
    watchers.clear();
  }

  synchronized int watchers() {
    return watchers.size();
  }

  @Override
  public synchronized void get(StateGetRequest request, StreamObserver<StateGetResponse> answer) {
    dev.baton.v1.Entry entry = entries.get(request.getKey());
    if (entry == null) {
      FakeSidecar.refuse(answer, Status.NOT_FOUND);
    } else {
      FakeSidecar.answer(answer, StateGetResponse.newBuilder().setEntry(entry).build());
    }
  }

  @Override
  public synchronized void put(StatePutRequest request, StreamObserver<StatePutResponse> answer) {
    boolean owned = request.getKey().contains("-state:");
    if (owned && !sidecar.isLive(request.getRun())) {
      FakeSidecar.refuse(answer, Status.FAILED_PRECONDITION);
      return;
    }
    dev.baton.v1.Entry first = byRequest.get(request.getKey() + request.getRequestId());
    dev.baton.v1.Entry held =
        entries.getOrDefault(request.getKey(), dev.baton.v1.Entry.getDefaultInstance());
    if (first == null
        && request.hasExpectedVersion()
        && request.getExpectedVersion() != held.getVersion()) {
      FakeSidecar.refuse(answer, Status.ABORTED);
      return;
    }
    dev.baton.v1.Entry entry =
        first == null ? write(request.getKey(), request.getValue()) : first;
    byRequest.put(request.getKey() + request.getRequestId(), entry);
    FakeSidecar.answer(answer, StatePutResponse.newBuilder().setEntry(entry).build());
  }

  @Override
  public synchronized void delete(
      StateDeleteRequest request, StreamObserver<StateDeleteResponse> answer) {
    dev.baton.v1.Entry held = entries.get(request.getKey());
    long found = held == null ? 0 : held.getVersion();
    if (request.hasExpectedVersion() && request.getExpectedVersion() != found) {
      FakeSidecar.refuse(answer, Status.ABORTED);
      return;
    }
    remove(request.getKey());
    FakeSidecar.answer(answer, StateDeleteResponse.newBuilder().setDeleted(held != null).build());
  }

  @Override
  public synchronized void has(StateHasRequest request, StreamObserver<StateHasResponse> answer) {
    boolean exists = entries.containsKey(request.getKey());
    FakeSidecar.answer(answer, StateHasResponse.newBuilder().setExists(exists).build());
  }

  @Override
  public synchronized void list(
      StateListRequest request, StreamObserver<StateListResponse> answer) {
    List<dev.baton.v1.Entry> rest =
        entries.tailMap(request.getPageToken(), false).values().stream()
            .filter(entry -> entry.getKey().startsWith(request.getPrefix()))
            .toList();
    StateListResponse.Builder page =
        StateListResponse.newBuilder().addAllEntries(rest.subList(0, Math.min(2, rest.size())));
    if (rest.size() > 2) {
      page.setNextPageToken(rest.get(1).getKey());
    }
    FakeSidecar.answer(answer, page.build());
  }

  @Override
  public synchronized void size(
      StateSizeRequest request, StreamObserver<StateSizeResponse> answer) {
    long size = keys(request.getPrefix()).size();
    FakeSidecar.answer(answer, StateSizeResponse.newBuilder().setSize(size).build());
  }

  @Override
  public synchronized void clear(
      StateClearRequest request, StreamObserver<StateClearResponse> answer) {
    List<String> gone = keys(request.getPrefix());
    gone.forEach(this::remove);
    FakeSidecar.answer(answer, StateClearResponse.newBuilder().setDeleted(gone.size()).build());
  }

  @Override
  public synchronized void watch(
      StateWatchRequest request, StreamObserver<StateWatchResponse> answer) {
    ((io.grpc.stub.ServerCallStreamObserver<?>) answer).setOnCancelHandler(() -> leave(answer));
    if (request.hasAfterVersion()) {
      history.stream()
          .filter(change -> Change.of(change).entry().version() > request.getAfterVersion())
          .forEach(answer::onNext);
    }
    watchers.add(answer);
  }

  private synchronized void leave(StreamObserver<StateWatchResponse> watcher) {
    watchers.remove(watcher);
  }

  private List<String> keys(String prefix) {
    return entries.keySet().stream().filter(key -> key.startsWith(prefix)).toList();
  }

  private void remove(String key) {
    if (entries.remove(key) != null) {
      dev.baton.v1.Entry gone =
          dev.baton.v1.Entry.newBuilder().setKey(key).setVersion(++version).build();
      tell(StateWatchResponse.newBuilder().setDeleted(gone).build());
    }
  }

  private void tell(StateWatchResponse change) {
    history.add(change);
    watchers.forEach(watcher -> watcher.onNext(change));
  }
}
