package dev.baton;

import dev.baton.v1.RunsCheckpointRequest;
import dev.baton.v1.RunsGrpc;
import dev.baton.v1.RunsHeartbeatRequest;

/** How the checkpoints and heartbeats of a run reach the sidecar. */
interface RunCalls {
  /** Returns once the step is stored. */
  void checkpoint(RunsCheckpointRequest request);

  /** Returns once the heartbeat is stored. */
  void heartbeat(RunsHeartbeatRequest request);

  /** By a call each: for a run that arrived by a call. */
  record Unary(Connection connection) implements RunCalls {
    @Override
    public void checkpoint(RunsCheckpointRequest request) {
      connection.ask(RunsGrpc.getCheckpointMethod(), request);
    }

    @Override
    public void heartbeat(RunsHeartbeatRequest request) {
      connection.ask(RunsGrpc.getHeartbeatMethod(), request);
    }
  }
}
