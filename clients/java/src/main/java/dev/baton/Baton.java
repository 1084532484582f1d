package dev.baton;

import io.grpc.Server;
import io.grpc.ServerInterceptors;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.protobuf.services.HealthStatusManager;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An app beside its sidecar: register handlers and hooks, then {@link #run} it; or {@link #start}
 * it, and {@link #close} it, inside a program that has other things to do. It is served once.
 */
public final class Baton implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("baton");
  private static final String SERVICE = "baton.v1.AppCallback";
  private static final String DEFAULT_GROUP = "default";
  private static final Duration STOP_TIME = Duration.ofSeconds(2);

  private final Callbacks.Handlers handlers = new Callbacks.Handlers();
  private final Hooks hooks = new Hooks();
  private final AtomicBoolean stopping = new AtomicBoolean();
  private final CountDownLatch stop = new CountDownLatch(1);
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile Serving serving;

  /** What there is while the app is served. */
  private record Serving(
      Sidecar sidecar,
      Leading leading,
      ExecutorService threads,
      ScheduledExecutorService timer,
      HealthStatusManager health,
      Server server,
      String address) {}

  /** Registers the handler of a schedule, by ticks and by Trigger. */
  public Baton schedule(String name, Handler handler) {
    return register(handlers.schedules(), name, handler);
  }

  /** Registers the handler of a singleton: it runs for as long as the term lasts. */
  public Baton singleton(String name, Handler handler) {
    return register(handlers.singletons(), name, handler);
  }

  /** Registers what is done before the first run of a term of the group {@code default}. */
  public Baton onBecomeLeader(Hooks.Become hook) {
    return onBecomeLeader(DEFAULT_GROUP, hook);
  }

  /** Registers what is done before the first run of a term; an error refuses the term. */
  public Baton onBecomeLeader(String group, Hooks.Become hook) {
    return register(hooks.become, group, hook);
  }

  /** Registers what is done when a term of the group {@code default} is over. */
  public Baton onLoseLeadership(Hooks.Lose hook) {
    return onLoseLeadership(DEFAULT_GROUP, hook);
  }

  /** Registers what is done when a term is over. */
  public Baton onLoseLeadership(String group, Hooks.Lose hook) {
    return register(hooks.lose, group, hook);
  }

  /** Whether this app leads the group {@code default} at this instant. */
  public boolean isLeader() {
    return isLeader(DEFAULT_GROUP);
  }

  /** Whether this app may act as leader at this instant; never true past the trust time. */
  public boolean isLeader(String group) {
    return epoch(group).isPresent();
  }

  /** The fencing token of the term this app leads in now; empty if it does not lead. */
  public OptionalLong epoch(String group) {
    Serving now = serving;
    Optional<Term> term = now == null ? Optional.empty() : now.leading().terms.get(group);
    return term.filter(Term::leads).stream().mapToLong(found -> found.epoch).findFirst();
  }

  /** The sidecar's services, while the app is served. */
  public Sidecar sidecar() {
    return required().sidecar();
  }

  /** Where the app is served, with the port that was chosen for 0. */
  public String address() {
    return required().address();
  }

  /**
   * The whole main program: serves the app, as the environment says, until SIGTERM or SIGINT; then
   * has the sidecar take leadership back, and ends. A second signal ends it at once.
   */
  public void run() throws IOException, InterruptedException {
    run(Options.fromEnvironment());
  }

  /** As above, as the options say. */
  public void run(Options options) throws IOException, InterruptedException {
    Signals.onEnd(this::stop); // before anybody can make this app a leader
    start(options);
    LOG.log(Level.INFO, "serving at {0}", address());
    try {
      stop.await();
      drain(options.drainTime());
    } finally {
      close();
    }
  }

  /** Ends {@link #run}: the first call hands leadership over, a second one does not wait. */
  public void stop() {
    if (stopping.getAndSet(true)) { // signals come in threads of their own, perhaps at once
      ended.countDown();
    }
    stop.countDown();
  }

  /** Serves the app until {@link #close}; returns at once. */
  public synchronized void start(Options options) throws IOException {
    if (serving != null) {
      throw new IllegalStateException("this app was started already");
    }
    Callbacks.Gate gate = new Callbacks.Gate(TokenFile.of(options.appTokenFile()));
    Sidecar sidecar = Sidecar.connect(options);
    ExecutorService threads = Executors.newCachedThreadPool(daemons("baton-handler"));
    ScheduledExecutorService timer =
        Executors.newSingleThreadScheduledExecutor(daemons("baton-trust"));
    Leading leading = new Leading(sidecar, hooks, Clock.SYSTEM, threads, timer);
    HealthStatusManager health = new HealthStatusManager();
    try {
      Server server =
          Transport.listener(options.appAddress())
              .addService(
                  ServerInterceptors.intercept(
                      new Callbacks(sidecar, leading, handlers, threads), gate))
              .addService(health.getHealthService()) // without a token: the kubelet has none
              .build();
      // Before the first call can come: a hook may ask who leads.
      health.setStatus(SERVICE, ServingStatus.SERVING);
      serving = new Serving(sidecar, leading, threads, timer, health, server, "");
      server.start();
      String address = Transport.served(options.appAddress(), server);
      serving = new Serving(sidecar, leading, threads, timer, health, server, address);
    } catch (IOException | RuntimeException error) {
      serving = null;
      sidecar.close();
      timer.shutdownNow();
      threads.shutdown();
      throw error;
    }
  }

  /** Ends every term and stops serving, within a few seconds. */
  @Override
  public synchronized void close() {
    Serving now = serving;
    if (now == null) {
      return;
    }
    now.health().enterTerminalState();
    try {
      now.leading().endAll(STOP_TIME);
      now.server().shutdown().awaitTermination(STOP_TIME.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException hurry) {
      Thread.currentThread().interrupt();
    } finally {
      now.server().shutdownNow();
      now.sidecar().close();
      now.timer().shutdownNow();
      now.threads().shutdown();
    }
  }

  /** Asks the sidecar to hand over what this app leads, and waits until it has. */
  private void drain(Duration time) throws InterruptedException {
    Leading leading = required().leading();
    leading.stopping();
    required().threads().execute(() -> handOver(leading));
    if (!ended.await(time.toMillis(), TimeUnit.MILLISECONDS)) {
      LOG.log(Level.WARNING, "leadership was not taken back within {0}", time);
    }
  }

  private void handOver(Leading leading) {
    for (String group : leading.groups()) {
      try {
        sidecar().leadership().resign(group);
      } catch (BatonException error) { // it may be handing over already, or be gone
        LOG.log(Level.WARNING, "resigning {0}: {1}", group, error.getMessage());
      }
    }
    try {
      leading.awaitIdle();
      ended.countDown();
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  private Serving required() {
    Serving now = serving;
    if (now == null) {
      throw new BatonException.NotConnected("the app is not served yet");
    }
    return now;
  }

  private <T> Baton register(Map<String, T> registry, String name, T what) {
    if (registry.putIfAbsent(name, what) != null) {
      throw new IllegalArgumentException("'" + name + "' is registered already");
    }
    return this;
  }

  private static ThreadFactory daemons(String name) {
    AtomicInteger count = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, name + "-" + count.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }
}
