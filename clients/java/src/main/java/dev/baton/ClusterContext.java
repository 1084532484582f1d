package dev.baton;

/**
 * The term, and with a handler the entity, on whose behalf code runs.
 *
 * @param cluster the name of the cluster
 * @param runnerId the sidecar that called
 * @param group the group that this is about
 * @param isLeader whether this runner leads the group
 * @param epoch the fencing token of the term
 * @param entityType {@code singleton}, {@code schedule} or {@code job}; empty in a hook
 * @param entityId the name of the singleton or schedule, or the key of the job; empty in a hook
 */
public record ClusterContext(
    String cluster,
    String runnerId,
    String group,
    boolean isLeader,
    long epoch,
    String entityType,
    String entityId) {

  /** From the message of a callback; an empty group means `default`, except with a job. */
  static ClusterContext of(dev.baton.v1.ClusterContext message) {
    return new ClusterContext(
        message.getCluster(),
        message.getRunnerId(),
        message.getEntityType().equals("job") ? message.getGroup() : group(message.getGroup()),
        message.getIsLeader(),
        message.getEpoch(),
        message.getEntityType(),
        message.getEntityId());
  }

  /** The name of a group as it is in a message. */
  static String group(String name) {
    return name.isEmpty() ? "default" : name;
  }

  /** This context, from the sidecar that a stream leads to. */
  ClusterContext of(String ofCluster, String ofRunner) {
    return new ClusterContext(
        ofCluster, ofRunner, group, isLeader, epoch, entityType, entityId);
  }

  /** The context in which the end of a term is told. */
  ClusterContext lost(long lostEpoch) {
    return new ClusterContext(cluster, runnerId, group, false, lostEpoch, "", "");
  }
}
