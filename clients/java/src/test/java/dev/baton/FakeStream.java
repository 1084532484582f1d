package dev.baton;

import dev.baton.v1.AppStreamGrpc;
import dev.baton.v1.AttachRequest;
import dev.baton.v1.AttachResponse;
import dev.baton.v1.Welcome;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Attach in memory: every stream is a session that a test drives. */
final class FakeStream extends AppStreamGrpc.AppStreamImplBase {
  /** Sessions in the order of their beginning, ended ones included. */
  final List<FakeSession> sessions = new CopyOnWriteArrayList<>();

  /** How many streams were refused. */
  final List<Status> refused = new CopyOnWriteArrayList<>();

  /** If set, every new stream ends so. */
  volatile Status refusal;

  volatile Welcome welcome =
      Welcome.newBuilder()
          .setCluster("test")
          .setRunnerId("fake")
          .setMessageBytesMax(4 << 20)
          .setFrameEntriesMax(512)
          .build();

  private final FakeSidecar sidecar;

  FakeStream(FakeSidecar sidecar) {
    this.sidecar = sidecar;
  }

  @Override
  public StreamObserver<AttachRequest> attach(StreamObserver<AttachResponse> responses) {
    FakeSession session =
        new FakeSession(sidecar, (ServerCallStreamObserver<AttachResponse>) responses);
    if (refusal != null) {
      Status status = refusal;
      session.end(status);
      refused.add(status);
    } else {
      sessions.add(session);
    }
    return session;
  }

  /** The newest session that has said hello and is open; waits for one. */
  FakeSession session() throws InterruptedException {
    FakeSidecar.eventually(() -> newest() != null);
    return newest();
  }

  /** The next session after so many others. */
  FakeSession session(int number) throws InterruptedException {
    FakeSidecar.eventually(() -> sessions.size() > number && sessions.get(number).hello != null);
    return sessions.get(number);
  }

  FakeSession newest() {
    return sessions.stream()
        .filter(it -> it.hello != null && !it.isOver())
        .reduce((one, other) -> other)
        .orElse(null);
  }
}
