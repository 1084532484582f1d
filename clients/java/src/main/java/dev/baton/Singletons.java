package dev.baton;

import dev.baton.v1.Singleton;
import dev.baton.v1.SingletonsGetRequest;
import dev.baton.v1.SingletonsGrpc;
import dev.baton.v1.SingletonsListRequest;
import dev.baton.v1.SingletonsListResponse;
import java.util.stream.Stream;

/** The singletons of the cluster, as the configuration names them. */
public final class Singletons {
  private final Connection connection;

  Singletons(Connection connection) {
    this.connection = connection;
  }

  /** One singleton. */
  public Singleton get(String name) {
    SingletonsGetRequest request = SingletonsGetRequest.newBuilder().setName(name).build();
    return connection.ask(SingletonsGrpc.getGetMethod(), request).getSingleton();
  }

  /** All singletons, by name. */
  public Stream<Singleton> list() {
    return Paging.all(
        token ->
            connection.ask(
                SingletonsGrpc.getListMethod(),
                SingletonsListRequest.newBuilder().setPageToken(token).build()),
        SingletonsListResponse::getSingletonsList,
        SingletonsListResponse::getNextPageToken);
  }
}
