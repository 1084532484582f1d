package dev.baton;

import dev.baton.v1.Outcome;
import dev.baton.v1.Run;
import dev.baton.v1.RunState;
import dev.baton.v1.RunsCancelRequest;
import dev.baton.v1.RunsGetRequest;
import dev.baton.v1.RunsGrpc;
import dev.baton.v1.RunsListRequest;
import dev.baton.v1.RunsListResponse;
import dev.baton.v1.RunsRetryRequest;
import java.util.stream.Stream;

/** The runs of the cluster: reading and steering them; works on any pod. */
public final class Runs {
  private final Connection connection;

  Runs(Connection connection) {
    this.connection = connection;
  }

  /** One run, with its history and result. */
  public Run get(long runId) {
    RunsGetRequest request = RunsGetRequest.newBuilder().setRunId(runId).build();
    return connection.ask(RunsGrpc.getGetMethod(), request).getRun();
  }

  /** The runs of a singleton or schedule, newest first, without history and result. */
  public Stream<Run> list(String name) {
    return list(name, Outcome.OUTCOME_UNSPECIFIED, RunState.RUN_STATE_UNSPECIFIED);
  }

  /** Runs that match all filters; an empty name and unspecified values match everything. */
  public Stream<Run> list(String name, Outcome outcome, RunState state) {
    RunsListRequest filters =
        RunsListRequest.newBuilder().setName(name).setOutcome(outcome).setState(state).build();
    return Paging.all(
        token ->
            connection.ask(
                RunsGrpc.getListMethod(), filters.toBuilder().setPageToken(token).build()),
        RunsListResponse::getRunsList,
        RunsListResponse::getNextPageToken);
  }

  /** Asks for a run to be ended; the note says why. */
  public Run cancel(long runId, String note) {
    RunsCancelRequest request =
        RunsCancelRequest.newBuilder().setRunId(runId).setNote(note).build();
    return connection.tell(RunsGrpc.getCancelMethod(), request).getRun();
  }

  /** Gives a failed run a new life. */
  public Run retry(long runId) {
    RunsRetryRequest request = RunsRetryRequest.newBuilder().setRunId(runId).build();
    return connection.tell(RunsGrpc.getRetryMethod(), request).getRun();
  }
}
