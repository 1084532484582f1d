package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import dev.baton.v1.JobSpec;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Programs as processes of their own: ended by signals; the example; the page that shows one. */
@Timeout(240)
@EnabledOnOs(OS.LINUX)
class ProgramTest {
  @TempDir Path directory;
  private FakeSidecar sidecar;
  private Process process;

  @BeforeEach
  void open() throws IOException {
    sidecar = new FakeSidecar();
  }

  @AfterEach
  void close() {
    if (process != null) {
      process.destroyForcibly();
    }
    sidecar.close();
  }

  /** A main program; its arguments: address (empty: attached), sidecar, drain time in seconds. */
  public static final class Slow {
    private Slow() {}

    /** Serves until told to end. */
    public static void main(String[] args) throws Exception {
      Baton app = new Baton();
      app.schedule("slow", Slow::untilDraining);
      app.job("slow", Slow::untilDraining);
      app.onLoseLeadership((it, reason) -> System.out.println("lost " + reason));
      Options options =
          Options.fromEnvironment()
              .withApiAddress(args[1])
              .withDrainTime(Duration.ofMillis(Math.round(1000 * Double.parseDouble(args[2]))));
      app.run(args[0].isEmpty() ? options : options.withAppAddress(args[0]));
    }

    private static Result untilDraining(Context context) throws InterruptedException {
      context.heartbeat(0.0, "begun");
      context.awaitDraining(Duration.ofMinutes(1));
      Thread.sleep(200);
      return Result.of("finished");
    }
  }

  private void start(String main, String... args) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main));
    command.addAll(List.of(args));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("ORDERS_LEDGER", directory.resolve("ledger").toString());
    builder.environment().put("ORDERS_STEP_SECONDS", "0.1");
    builder.redirectError(directory.resolve("log").toFile());
    process = builder.start();
    if (args[0].isEmpty()) {
      sidecar.stream.session();
    } else {
      sidecar.callAppAt(address());
    }
    sidecar.lead();
  }

  private String address() {
    return "unix://" + directory.resolve("app.sock");
  }

  private void signal(String name) throws Exception {
    new ProcessBuilder("kill", "-" + name, "" + process.pid()).start().waitFor();
  }

  private String ended() throws Exception {
    assertTrue(process.waitFor(30, TimeUnit.SECONDS));
    assertEquals(0, process.exitValue());
    return new String(process.getInputStream().readAllBytes());
  }

  /** G1: runs finish, OnLoseLeadership is answered, and only then the process ends. */
  @Test
  void afterSigtermItServesUntilLeadershipIsHandedOver() throws Exception {
    start(Slow.class.getName(), address(), sidecar.address(), "20");
    var run = CompletableFuture.supplyAsync(() -> sidecar.execute("slow", null));
    eventually(() -> sidecar.runs.get(1) != null && "begun".equals(sidecar.runs.get(1).message()));
    signal("TERM");
    assertEquals("\"finished\"", run.get().getSucceeded().getResult().toStringUtf8());
    assertEquals("lost LOSS_REASON_RESIGNED\n", ended());
  }

  /** G18: so does an attached one, which asks for no more work first. */
  @Test
  void afterSigtermAnAttachedProgramFinishesItsRuns() throws Exception {
    start(Slow.class.getName(), "", sidecar.address(), "60");
    FakeSession session = sidecar.stream.session();
    var run = CompletableFuture.supplyAsync(() -> sidecar.execute("slow", null));
    eventually(() -> sidecar.runs.get(1) != null && "begun".equals(sidecar.runs.get(1).message()));
    long job = sidecar.jobs.submit(JobSpec.newBuilder().setName("slow").build()).getJobId();
    sidecar.jobs.start();
    eventually(() -> "begun".equals(sidecar.runs.get(job).message()));
    signal("TERM");
    assertEquals("\"finished\"", run.get().getSucceeded().getResult().toStringUtf8());
    assertEquals("lost LOSS_REASON_RESIGNED\n", ended());
    session.ended.get();
    assertEquals("\"finished\"", sidecar.jobs.job(job).getResult().toStringUtf8());
    assertTrue(session.received.stream().anyMatch(it -> it.hasCapacity() && it.getCapacity() == 0));
    assertEquals(1, sidecar.stream.sessions.size());
  }

  /** G18: what is not finished in the drain time is handed back; so it is after a second signal. */
  @Test
  void anAttachedProgramThatCannotFinishLeavesInTime() throws Exception {
    sidecar.obeysResign = false;
    start(Slow.class.getName(), "", sidecar.address(), "600");
    signal("TERM");
    eventually(() -> sidecar.resigned);
    signal("TERM");
    assertEquals("lost LOSS_REASON_SHUTDOWN\n", ended());
    sidecar.stream.session(0).ended.get();
  }

  /** A sidecar that does not answer any more never keeps the process. */
  @Test
  void theDrainTimeBoundsTheWait() throws Exception {
    start(Slow.class.getName(), address(), "127.0.0.1:1", "0.3");
    signal("TERM");
    assertEquals("lost LOSS_REASON_SHUTDOWN\n", ended());
  }

  /** An impatient operator is obeyed. */
  @Test
  void aSecondSignalDoesNotWait() throws Exception {
    sidecar.obeysResign = false;
    start(Slow.class.getName(), address(), sidecar.address(), "60");
    signal("TERM"); // INT may be ignored, and is then inherited so
    eventually(() -> sidecar.resigned);
    signal("TERM");
    assertEquals("lost LOSS_REASON_SHUTDOWN\n", ended());
  }

  private long count() {
    ByteString state = sidecar.state.value("singleton-state:coordinator");
    return state.isEmpty() ? 0 : Json.fromBytes(state, JsonObject.class).get("count").getAsLong();
  }

  /** The report counts, the flaky one needs three attempts, the coordinator keeps its count. */
  @Test
  void theExampleKeepsItsCounts() throws Exception {
    start("Orders", "--address", address(), "--sidecar", sidecar.address());
    sidecar.execute("report", null);
    String second = sidecar.execute("report", null).getSucceeded().getResult().toStringUtf8();
    assertEquals("{\"report\":2}", second);
    FakeRuns.Record flaky = sidecar.schedule("flaky", null);
    assertEquals("the supplier is busy", sidecar.deliver(flaky).getFailed().getMessage());
    assertTrue(sidecar.deliver(flaky).getFailed().getRetryable());
    assertTrue(sidecar.deliver(flaky).hasSucceeded());
    for (int term = 0; term < 2; term++) {
      long before = count();
      CompletableFuture.runAsync(() -> sidecar.deliver(sidecar.singleton("coordinator")));
      eventually(() -> count() > before);
      sidecar.lose();
      sidecar.lead();
    }
    signal("TERM");
    ended();
  }

  /** G5: every step of the order is done once, over two terms. */
  @Test
  void anOrderOfTheExampleSurvivesTheEndOfATerm() throws Exception {
    start("Orders", "--address", address(), "--sidecar", sidecar.address());
    FakeRuns.Record run = sidecar.schedule("order-flow", Map.of("order", 7));
    sidecar.runs.holdsAt = "charge"; // between two steps
    var first = CompletableFuture.runAsync(() -> sidecar.deliver(run));
    eventually(() -> run.message().equals("charge"));
    sidecar.lose();
    Throwable cut = assertThrows(Exception.class, first::get).getCause();
    assertTrue(cut instanceof StatusRuntimeException, cut.toString());
    sidecar.runs.holdsAt = "";
    sidecar.lead();
    String result = sidecar.deliver(run).getSucceeded().getResult().toStringUtf8();
    assertEquals("{\"order\":7,\"done\":true}", result);
    List<String> steps = new ArrayList<>();
    for (String line : Files.readAllLines(directory.resolve("ledger"))) {
      steps.add(JsonParser.parseString(line).getAsJsonObject().get("step").getAsString());
    }
    assertEquals(List.of("reserve", "charge", "pack", "ship", "notify"), steps);
  }

  /** The page begins with a program that compiles. */
  @Test
  void thePageShowsTheProgramThatWasCompiled() throws Exception {
    String page = Files.readString(Path.of("README.md"));
    String program = Files.readString(Path.of("examples", "Main.java"));
    assertTrue(page.contains("```java\n" + program + "```"));
  }
}
