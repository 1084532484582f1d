import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import dev.baton.Baton;
import dev.baton.ClusterContext;
import dev.baton.Context;
import dev.baton.Ending.Retry;
import dev.baton.Options;
import dev.baton.Result;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/**
 * An example app: what a shop might leave to Baton.
 *
 * <pre>
 * report       a schedule that counts its own runs in its owned state
 * flaky        a schedule whose first attempts fail
 * coordinator  a singleton: one in the whole cluster, its counter survives every change of leader
 * order-flow   five durable steps; each is recorded in the ledger once it is done
 * </pre>
 *
 * <p>Start it beside a sidecar: examples/orders --address 127.0.0.1:50051 --sidecar 127.0.0.1:9401
 */
public final class Orders {
  private static final System.Logger LOG = System.getLogger("orders");
  private static final List<String> STEPS = List.of("reserve", "charge", "pack", "ship", "notify");

  private Orders() {}

  /** The state of the coordinator. */
  record Counter(long count) {}

  /** Serves until it is told to end. */
  public static void main(String[] args) throws IOException, InterruptedException {
    Baton app = new Baton();
    app.onBecomeLeader(cluster -> say("leader of " + named(cluster)));
    app.onLoseLeadership(
        (cluster, reason) -> say("no longer leader of " + named(cluster) + ": " + reason));
    app.schedule("report", Orders::report);
    app.schedule("flaky", Orders::flaky);
    app.schedule("order-flow", Orders::orderFlow);
    app.singleton("coordinator", Orders::coordinator);
    app.run(options(args));
  }

  private static Result report(Context context) {
    JsonObject state = context.state(JsonObject.class, new JsonObject());
    long number = state.has("reports") ? state.get("reports").getAsLong() + 1 : 1;
    say("report " + number + ", due at " + context.scheduledAt());
    state.addProperty("reports", number);
    JsonObject result = new JsonObject();
    result.addProperty("report", number);
    return Result.of(result).withState(state);
  }

  private static Result flaky(Context context) {
    if (context.attempt() < 3) {
      throw new Retry("the supplier is busy");
    }
    say("flaky succeeded at attempt " + context.attempt());
    return Result.of("succeeded at attempt " + context.attempt());
  }

  private static Result coordinator(Context context) throws InterruptedException {
    long count = context.state(Counter.class, new Counter(0)).count();
    while (!context.isDraining()) {
      count++;
      context.putState(new Counter(count));
      context.heartbeat("count " + count);
      say("coordinator counts " + count);
      context.awaitDraining(Duration.ofSeconds(1)); // then leave at once: nobody has to wait
    }
    return Result.done();
  }

  private static Result orderFlow(Context context) throws Exception {
    JsonObject payload = context.payload(JsonObject.class);
    JsonElement order =
        payload != null && payload.has("order")
            ? payload.get("order")
            : new JsonPrimitive(context.runId());
    double done = 0;
    for (String step : STEPS) {
      context.step(step, String.class, () -> perform(context, step, order));
      context.heartbeat(++done / STEPS.size(), step);
    }
    JsonObject result = new JsonObject();
    result.add("order", order);
    result.addProperty("done", true);
    return Result.of(result);
  }

  /** One step of an order: it takes its time, then leaves a line in the ledger. */
  private static String perform(Context context, String step, JsonElement order) throws Exception {
    Thread.sleep(Math.round(1000 * Double.parseDouble(given("ORDERS_STEP_SECONDS", "0.2"))));
    JsonObject line = new JsonObject();
    line.add("order", order);
    line.addProperty("run", context.runId());
    line.addProperty("step", step);
    line.addProperty("attempt", context.attempt());
    String ledger = given("ORDERS_LEDGER", "");
    if (!ledger.isEmpty()) {
      append(ledger, new Gson().toJson(line));
    }
    say("order " + order + ": " + step);
    return step;
  }

  private static void append(String ledger, String line) throws IOException {
    try (FileOutputStream file = new FileOutputStream(ledger, true)) {
      file.write((line + "\n").getBytes(StandardCharsets.UTF_8));
      file.getFD().sync();
    }
  }

  private static void say(String text) {
    LOG.log(Level.INFO, text);
  }

  private static String named(ClusterContext cluster) {
    return cluster.group() + ", epoch " + Long.toUnsignedString(cluster.epoch());
  }

  private static Options options(String[] args) {
    Options options = Options.fromEnvironment();
    for (int i = 0; i < args.length; i += 2) {
      String value = i + 1 < args.length ? args[i + 1] : "";
      options =
          switch (args[i]) {
            case "--address" -> options.withAppAddress(value);
            case "--sidecar" -> options.withApiAddress(value);
            default -> throw new IllegalArgumentException("orders [--address A] [--sidecar A]");
          };
    }
    return options;
  }

  private static String given(String variable, String otherwise) {
    return System.getenv().getOrDefault(variable, otherwise);
  }
}
