package dev.baton;

import io.grpc.Status;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An app beside its sidecar: register handlers and hooks, then {@link #run} it; or {@link #attach}
 * it, and {@link #close} it, inside a program that has other things to do. It is started once.
 */
public final class Baton implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("baton");
  private static final String DEFAULT_GROUP = "default";
  private static final Duration STOP_TIME = Duration.ofSeconds(2);

  private final Handlers handlers = new Handlers();
  private final Hooks hooks = new Hooks();
  private final AtomicBoolean stopping = new AtomicBoolean();
  private final CountDownLatch stop = new CountDownLatch(1);
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile Running running;
  private boolean closed;

  /** What there is while the app is attached or served. */
  private record Running(Sidecar sidecar, AppCalls calls, Threads threads, Link link) {}

  /** Registers the handler of a schedule, by ticks and by Trigger. */
  public Baton schedule(String name, Handler handler) {
    return register(handlers.schedules, name, handler);
  }

  /** Registers the handler of a singleton: it runs for as long as the term lasts. */
  public Baton singleton(String name, Handler handler) {
    return register(handlers.singletons, name, handler);
  }

  /** Declares a schedule and registers its handler. */
  public Baton schedule(ScheduleDefinition definition, Handler handler) {
    schedule(definition.message().getName(), handler);
    handlers.declaredSchedules.add(definition);
    return this;
  }

  /** Declares a singleton and registers its handler. */
  public Baton singleton(SingletonDefinition definition, Handler handler) {
    singleton(definition.message().getName(), handler);
    handlers.declaredSingletons.add(definition);
    return this;
  }

  /** Registers the handler of the jobs of a name. */
  public Baton job(String name, Handler handler) {
    return register(handlers.jobs, name, handler);
  }

  /** As above; what a job submitted by this app does not set comes from {@code defaults}. */
  public Baton job(NewJob defaults, Handler handler) {
    job(defaults.spec().getName(), handler);
    handlers.jobDefaults.put(defaults.spec().getName(), defaults.spec());
    return this;
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
    Running now = running;
    Optional<Term> term = now == null ? Optional.empty() : now.calls().leading.terms.get(group);
    return term.filter(Term::leads).stream().mapToLong(found -> found.epoch).findFirst();
  }

  /** The sidecar's services, while the app is attached or served. */
  public Sidecar sidecar() {
    return required().sidecar();
  }

  /** The jobs of the cluster, while the app is attached or served. */
  public Jobs jobs() {
    return sidecar().jobs();
  }

  /** Where the app is served, with the port that was chosen for 0; empty if it is attached. */
  public String address() {
    return required().link().address();
  }

  /**
   * The whole main program: attaches the app to its sidecar, as the environment says, until SIGTERM
   * or SIGINT; then finishes its runs, has the sidecar take leadership back, and ends. A second
   * signal ends it at once. If BATON_APP_ADDRESS is set the app is served there instead.
   */
  public void run() throws IOException, InterruptedException {
    run(Options.fromEnvironment());
  }

  /** As above, as the options say; {@link Options#withAppAddress} means that the app is served. */
  public void run(Options options) throws IOException, InterruptedException {
    Signals.onEnd(this::stop); // before anybody can make this app a leader
    if (options.isServed()) {
      start(options);
      LOG.log(Level.INFO, "serving at {0}", address());
    } else {
      attach(options);
    }
    try {
      stop.await();
      drain(options.drainTime());
    } finally {
      close();
    }
  }

  /** The whole main program of an app that the sidecar calls at this address. */
  public void serve(String address) throws IOException, InterruptedException {
    run(Options.fromEnvironment().withAppAddress(address));
  }

  /** Ends {@link #run}: the first call hands leadership over, a second one does not wait. */
  public void stop() {
    if (stopping.getAndSet(true)) { // signals come in threads of their own, perhaps at once
      ended.countDown();
    }
    stop.countDown();
  }

  /** Attaches the app until {@link #close}, as the environment says. */
  public Baton attach() {
    return attach(Options.fromEnvironment());
  }

  /**
   * Attaches the app until {@link #close}; returns at once. While the sidecar is away it is dialled
   * again and again.
   */
  public synchronized Baton attach(Options options) {
    Running now = connect(options, false);
    HelloMessage hello = new HelloMessage(handlers, options);
    Attachment attachment = new Attachment(now.calls(), hello::build);
    running = new Running(now.sidecar(), now.calls(), now.threads(), attachment);
    attachment.start();
    return this;
  }

  /** Waits until the sidecar has accepted the attached app; whether it has in this time. */
  public boolean awaitAttached(Duration time) throws InterruptedException {
    return required().link() instanceof Attachment attachment && attachment.await(time);
  }

  /** Serves the app until {@link #close}; returns at once. */
  public synchronized void start(Options options) throws IOException {
    Running now = connect(options, true);
    try {
      Served served = new Served(now.calls(), options);
      // Before the first call can come: a hook may ask who leads.
      running = new Running(now.sidecar(), now.calls(), now.threads(), served);
      served.start();
    } catch (IOException | RuntimeException error) {
      running = null;
      now.sidecar().close();
      now.threads().close();
      throw error;
    }
  }

  /** Ends every term, stops every run and leaves the sidecar, within a few seconds. */
  @Override
  public synchronized void close() {
    Running now = running;
    if (now == null || closed) {
      return;
    }
    closed = true;
    try {
      endWork(now);
    } finally {
      now.sidecar().close();
      now.threads().close();
    }
  }

  private static void endWork(Running now) {
    now.link().closing();
    now.calls().jobs.stop(Status.UNAVAILABLE.withDescription("the app is stopping"));
    try {
      try {
        now.calls().leading.endAll(STOP_TIME);
        now.calls().jobs.await(STOP_TIME);
      } finally {
        now.link().close(STOP_TIME);
      }
    } catch (InterruptedException hurry) {
      Thread.currentThread().interrupt();
    }
  }

  private Running connect(Options options, boolean watchesTrust) {
    if (running != null) {
      throw new IllegalStateException("this app was started already");
    }
    Sidecar sidecar = Sidecar.connect(options, handlers::withDefaults);
    Threads threads = Threads.start();
    Leading leading = new Leading(sidecar, hooks, Clock.SYSTEM, threads, watchesTrust);
    AppCalls calls = new AppCalls(sidecar, leading, handlers, threads, options.hidesErrors());
    return new Running(sidecar, calls, threads, null);
  }

  /** Finishes the runs, asks the sidecar to hand over what this app leads, and waits for both. */
  private void drain(Duration time) throws InterruptedException {
    AppCalls calls = required().calls();
    calls.leading.stopping();
    calls.jobs.draining.countDown();
    required().link().leave();
    required().threads().handlers().execute(() -> handOver(calls));
    if (!ended.await(time.toMillis(), TimeUnit.MILLISECONDS)) {
      LOG.log(Level.WARNING, "runs or terms have not ended within {0}", time);
    }
  }

  private void handOver(AppCalls calls) {
    for (String group : calls.leading.groups()) {
      try {
        sidecar().leadership().resign(group);
      } catch (BatonException error) { // it may be handing over already, or be gone
        LOG.log(Level.WARNING, "resigning {0}: {1}", group, error.getMessage());
      }
    }
    try {
      calls.leading.awaitIdle();
      calls.jobs.await();
      ended.countDown();
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  private Running required() {
    Running now = running;
    if (now == null) {
      throw new BatonException.NotConnected("the app is neither attached nor served yet");
    }
    return now;
  }

  private <T> Baton register(Map<String, T> registry, String name, T what) {
    if (registry.putIfAbsent(name, what) != null) {
      throw new IllegalArgumentException("'" + name + "' is registered already");
    }
    return this;
  }
}
