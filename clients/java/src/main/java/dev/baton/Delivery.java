package dev.baton;

import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.ExecuteResponse;
import io.grpc.Status;

/**
 * One delivery of a run, by a call or over a stream.
 *
 * @param request the run
 * @param scope the context and the trace of everything below the handler
 * @param calls how its checkpoints and heartbeats are stored
 * @param answer where its answer goes
 */
record Delivery(ExecuteRequest request, Cluster.Scope scope, RunCalls calls, Answer answer) {
  /** Takes one answer: a response or a status other than OK. */
  interface Answer {
    /** The handler has ended. */
    void response(ExecuteResponse response);

    /** The attempt was refused or stopped. */
    void status(Status status);
  }
}
