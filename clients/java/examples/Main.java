import dev.baton.Baton;
import dev.baton.Ending.Retry;
import dev.baton.NewJob;
import dev.baton.Result;
import dev.baton.ScheduleDefinition;
import dev.baton.SingletonDefinition;
import java.time.Duration;
import java.util.Map;

public class Main {
  record Cleanup(int days) {}

  record Runs(int runs) {}

  record Order(int order) {}

  record Count(long count) {}

  public static void main(String[] args) throws Exception {
    Baton app = new Baton();

    app.onBecomeLeader(
        cluster -> System.out.println("leading " + cluster.group() + ", term " + cluster.epoch()));
    app.onLoseLeadership(
        (cluster, reason) -> System.out.println("no longer leading " + cluster.group()));

    // At two o'clock, on one pod.
    ScheduleDefinition cleanup =
        ScheduleDefinition.cron("daily-cleanup", "0 2 * * *")
            .withTimezone("Europe/Berlin")
            .withPayload(Map.of("days", 30));
    app.schedule(cleanup, context -> {
      Runs state = context.state(Runs.class, new Runs(0));
      return Result.of(context.payload(Cleanup.class))
          .withState(new Runs(state.runs() + 1)) // committed together,
          .withJobs(NewJob.named("order-flow", new Order(7))); // with this job
    });

    // On any pod: app.jobs().submit("order-flow", new Order(8)).
    app.job(NewJob.named("order-flow").withQueue("orders").withRetry(5), context -> {
      Order order = context.payload(Order.class);
      String charge = context.step("charge", String.class, () -> charge(order)); // once per job
      if (!context.deferred("approval").await(Boolean.class)) { // may take days
        throw new Retry("not approved").after(Duration.ofMinutes(1));
      }
      context.step("ship", () -> System.out.println("shipped " + charge));
      return Result.done();
    });

    // One instance in the whole cluster.
    app.singleton(SingletonDefinition.named("coordinator"), context -> {
      long count = context.state(Count.class, new Count(0)).count();
      while (!context.isDraining()) {
        context.putState(new Count(++count));
        context.awaitDraining(Duration.ofSeconds(1)); // interrupted when it must stop
      }
      return Result.done();
    });

    app.run(); // attached to the sidecar at 127.0.0.1:9401
  }

  private static String charge(Order order) {
    return "order " + order.order();
  }
}
