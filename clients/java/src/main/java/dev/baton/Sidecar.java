package dev.baton;

import dev.baton.v1.JobSpec;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;

/** The sidecar's services over one connection; works from any pod, leader or not. */
public final class Sidecar implements AutoCloseable {
  private final Connection connection;
  private final State state;
  private final Schedules schedules;
  private final Singletons singletons;
  private final Runs runs;
  private final Leadership leadership;
  private final Deferreds deferreds;
  private final Ids ids;
  private final Jobs jobs;
  private final AtomicReference<String> cluster = new AtomicReference<>();

  private Sidecar(Connection connection, UnaryOperator<JobSpec> jobDefaults) {
    this.connection = connection;
    state = new State(connection);
    schedules = new Schedules(connection);
    singletons = new Singletons(connection);
    runs = new Runs(connection);
    leadership = new Leadership(connection);
    deferreds = new Deferreds(connection);
    ids = new Ids(connection, Clock.SYSTEM);
    jobs = new Jobs(connection, jobDefaults, cluster::get);
  }

  /** Connects as the environment says, for a program that only calls the sidecar. */
  public static Sidecar connect() {
    return connect(Options.fromEnvironment());
  }

  /** Connects to {@link Options#apiAddress}; nothing is sent yet. */
  public static Sidecar connect(Options options) {
    return connect(options, UnaryOperator.identity());
  }

  static Sidecar connect(Options options, UnaryOperator<JobSpec> jobDefaults) {
    TokenFile token = TokenFile.of(options.apiTokenFile());
    return new Sidecar(new Connection(options.apiAddress(), token), jobDefaults);
  }

  /** The key-value data of the cluster. */
  public State state() {
    return state;
  }

  /** When things run. */
  public Schedules schedules() {
    return schedules;
  }

  /** The leader-only processes. */
  public Singletons singletons() {
    return singletons;
  }

  /** Executions. */
  public Runs runs() {
    return runs;
  }

  /** Who leads which group. */
  public Leadership leadership() {
    return leadership;
  }

  /** Durable promises. */
  public Deferreds deferreds() {
    return deferreds;
  }

  /** Background work. */
  public Jobs jobs() {
    return jobs;
  }

  /** A new id, unique across the cluster and above those this process was given before. */
  public long nextId() {
    return ids.next();
  }

  /** The sidecar has said whose it is. */
  void isOf(String clusterName) {
    if (!clusterName.isEmpty()) {
      cluster.set(clusterName);
    }
  }

  Connection connection() {
    return connection;
  }

  /** Closes the connection; open calls fail. */
  @Override
  public void close() {
    connection.close();
  }
}
