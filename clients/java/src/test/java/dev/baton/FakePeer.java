package dev.baton;

import dev.baton.v1.AppCallbackGrpc.AppCallbackBlockingStub;
import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import dev.baton.v1.OnBecomeLeaderRequest;
import dev.baton.v1.OnLoseLeadershipRequest;
import java.util.function.Supplier;

/** The app as the fake sidecar reaches it: by calls, or over a stream. */
interface FakePeer {
  /** Answered, or a StatusRuntimeException. */
  void onBecomeLeader(OnBecomeLeaderRequest request);

  /** Answered, or a StatusRuntimeException. */
  void onLoseLeadership(OnLoseLeadershipRequest request);

  /** The response, or a StatusRuntimeException; cancelled with the io.grpc.Context. */
  ExecuteResponse execute(ExecuteRequest request);

  /** By calls. */
  record Called(Supplier<AppCallbackBlockingStub> stub) implements FakePeer {
    @Override
    public void onBecomeLeader(OnBecomeLeaderRequest request) {
      stub.get().onBecomeLeader(request);
    }

    @Override
    public void onLoseLeadership(OnLoseLeadershipRequest request) {
      stub.get().onLoseLeadership(request);
    }

    @Override
    public ExecuteResponse execute(ExecuteRequest request) {
      return stub.get().execute(request);
    }
  }
}
