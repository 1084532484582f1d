package dev.baton;

import dev.baton.v1.Leader;
import dev.baton.v1.LeadershipGetRequest;
import dev.baton.v1.LeadershipGrpc;
import dev.baton.v1.LeadershipListRequest;
import dev.baton.v1.LeadershipListResponse;
import dev.baton.v1.LeadershipResignRequest;
import dev.baton.v1.LeadershipWatchRequest;
import dev.baton.v1.LeadershipWatchResponse;
import java.util.Iterator;
import java.util.stream.Stream;

/** Who leads which group. Whether this app may act as leader now: {@link Baton#isLeader}. */
public final class Leadership {
  private final Connection connection;

  Leadership(Connection connection) {
    this.connection = connection;
  }

  /** Who leads a group now. */
  public Leader get(String group) {
    LeadershipGetRequest request = LeadershipGetRequest.newBuilder().setGroup(group).build();
    return connection.ask(LeadershipGrpc.getGetMethod(), request).getLeader();
  }

  /** Who leads each group, by name. */
  public Stream<Leader> list() {
    return Paging.all(
        token ->
            connection.ask(
                LeadershipGrpc.getListMethod(),
                LeadershipListRequest.newBuilder().setPageToken(token).build()),
        LeadershipListResponse::getLeadersList,
        LeadershipListResponse::getNextPageToken);
  }

  /** Begins to hand the group over, on whichever pod it is led. */
  public Leader resign(String group) {
    LeadershipResignRequest request = LeadershipResignRequest.newBuilder().setGroup(group).build();
    return connection.ask(LeadershipGrpc.getResignMethod(), request).getLeader();
  }

  /** The leader of a group, now and after every change, until the stream breaks. */
  public Watch<Leader> watch(String group) {
    LeadershipWatchRequest request = LeadershipWatchRequest.newBuilder().setGroup(group).build();
    return new Watch<>(() -> leaders(request));
  }

  private Iterator<Leader> leaders(LeadershipWatchRequest request) {
    Iterator<LeadershipWatchResponse> messages =
        connection.stream(LeadershipGrpc.getWatchMethod(), request);
    return Paging.mapped(messages, LeadershipWatchResponse::getLeader);
  }
}
