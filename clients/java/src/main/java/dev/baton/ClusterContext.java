package dev.baton;

/**
 * The term, and with a handler the entity, on whose behalf code runs.
 *
 * @param cluster the name of the cluster
 * @param runnerId the sidecar that called
 * @param group the group that this is about
 * @param isLeader whether this runner leads the group
 * @param epoch the fencing token of the term
 * @param entityType {@code singleton} or {@code schedule}; empty in a hook
 * @param entityId the name of the singleton or schedule; empty in a hook
 */
public record ClusterContext(
    String cluster,
    String runnerId,
    String group,
    boolean isLeader,
    long epoch,
    String entityType,
    String entityId) {

  /** From the message of a callback; an empty group means `default`. */
  static ClusterContext of(dev.baton.v1.ClusterContext message) {
    return new ClusterContext(
        message.getCluster(),
        message.getRunnerId(),
        message.getGroup().isEmpty() ? "default" : message.getGroup(),
        message.getIsLeader(),
        message.getEpoch(),
        message.getEntityType(),
        message.getEntityId());
  }

  /** The context in which the end of a term is told. */
  ClusterContext lost(long lostEpoch) {
    return new ClusterContext(cluster, runnerId, group, false, lostEpoch, "", "");
  }
}
