package dev.baton;

import dev.baton.v1.IdsGenerateRequest;
import dev.baton.v1.IdsGrpc;
import java.util.Iterator;
import java.util.List;

/**
 * Cluster-wide ids in rising order, handed out from a block that is fetched ahead.
 *
 * <p>A block is used for a second at most: an id tells when it was made, and an old block would lie
 * about it.
 */
final class Ids {
  static final int BLOCK_SIZE = 100;
  static final long BLOCK_NANOS = 1_000_000_000L;

  private final Connection connection;
  private final Clock clock;
  private Iterator<Long> block = List.<Long>of().iterator();
  private long fetchedAt;

  Ids(Connection connection, Clock clock) {
    this.connection = connection;
    this.clock = clock;
  }

  /** The next id; asks the sidecar when the block is used up or old. */
  synchronized long next() {
    if (!block.hasNext() || clock.latest() - fetchedAt > BLOCK_NANOS) {
      long askedAt = clock.earliest();
      IdsGenerateRequest request = IdsGenerateRequest.newBuilder().setCount(BLOCK_SIZE).build();
      block = connection.ask(IdsGrpc.getGenerateMethod(), request).getIdsList().iterator();
      fetchedAt = askedAt;
    }
    return block.next();
  }
}
