package dev.baton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.baton.v1.OnLoseLeadershipRequest;
import dev.baton.v1.StateDeleteRequest;
import dev.baton.v1.StateDeleteResponse;
import dev.baton.v1.StateGrpc;
import dev.baton.v1.StateHasRequest;
import dev.baton.v1.StateHasResponse;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Errors, retries, tokens and addresses, on the wire. */
@Timeout(240)
class ConnectionTest {
  @TempDir Path directory;

  /** Refuses the first calls as told, then answers; counts both. */
  private static final class Refusing extends StateGrpc.StateImplBase {
    final AtomicInteger calls = new AtomicInteger();
    final ConcurrentLinkedQueue<StatusRuntimeException> refusals = new ConcurrentLinkedQueue<>();

    @Override
    public void has(StateHasRequest request, StreamObserver<StateHasResponse> answer) {
      answer(answer, StateHasResponse.newBuilder().setExists(true).build());
    }

    @Override
    public void delete(StateDeleteRequest request, StreamObserver<StateDeleteResponse> answer) {
      answer(answer, StateDeleteResponse.newBuilder().setDeleted(true).build());
    }

    private <T> void answer(StreamObserver<T> answer, T message) {
      calls.incrementAndGet();
      StatusRuntimeException refusal = refusals.poll();
      if (refusal == null) {
        FakeSidecar.answer(answer, message);
      } else {
        answer.onError(refusal);
      }
    }
  }

  private interface Body {
    void run(Refusing refusing, Sidecar client) throws Exception;
  }

  private static void beside(Body body) throws Exception {
    Refusing refusing = new Refusing();
    Server server = Transport.listener("127.0.0.1:0").addService(refusing).build().start();
    String address = "127.0.0.1:" + server.getPort();
    try (Sidecar client = Sidecar.connect(Options.from(Map.of("BATON_API_ADDRESS", address)))) {
      body.run(refusing, client);
    } finally {
      server.shutdownNow();
    }
  }

  static StatusRuntimeException refusal(Status.Code code, Message... details) {
    com.google.rpc.Status.Builder status = com.google.rpc.Status.newBuilder().setCode(code.value());
    for (Message detail : details) {
      status.addDetails(Any.pack(detail));
    }
    return refusal(code, status.build().toByteArray());
  }

  private static StatusRuntimeException refusal(Status.Code code, byte[] details) {
    Metadata trailers = new Metadata();
    trailers.put(Errors.DETAILS, details);
    return code.toStatus().withDescription("no").asRuntimeException(trailers);
  }

  /** UNAVAILABLE is waited out, as long as RetryInfo says; a write is not repeated blindly. */
  @Test
  void readsAreAskedAgainWhileTheSidecarIsAway() throws Exception {
    beside(
        (refusing, client) -> {
          RetryInfo delay =
              RetryInfo.newBuilder().setRetryDelay(Times.message(Duration.ofMillis(400))).build();
          refusing.refusals.add(refusal(Status.Code.UNAVAILABLE));
          refusing.refusals.add(refusal(Status.Code.UNAVAILABLE, delay));
          long begun = System.nanoTime();
          assertTrue(client.state().has("a"));
          assertTrue(System.nanoTime() - begun >= 400_000_000L);
          assertEquals(3, refusing.calls.get());
          refusing.refusals.add(refusal(Status.Code.UNAVAILABLE));
          var error =
              assertThrows(BatonException.Unavailable.class, () -> client.state().delete("a"));
          assertTrue(error.retryable());
          assertEquals(4, refusing.calls.get());
        });
  }

  /** ErrorInfo decides the class and whether to retry, BadRequest names the fields. */
  @Test
  void typedReasonsBecomeTypedErrors() throws Exception {
    Map<String, Class<? extends BatonException>> kinds =
        Map.of(
            "StateLoadFailed", BatonException.StateLoadFailed.class,
            "StatePersistFailed", BatonException.StatePersistFailed.class,
            "SchemaDecodeFailed", BatonException.SchemaDecodeFailed.class,
            "HeartbeatFailed", BatonException.HeartbeatFailed.class,
            "LeaderHandoffFailed", BatonException.LeaderHandoffFailed.class,
            "Fenced", BatonException.Fenced.class);
    beside(
        (refusing, client) -> {
          for (var kind : kinds.entrySet()) {
            ErrorInfo info = ErrorInfo.newBuilder().setReason(kind.getKey()).build();
            refusing.refusals.add(refusal(Status.Code.DATA_LOSS, info));
            var error = assertThrows(kind.getValue(), () -> client.state().has("a"));
            assertEquals(kind.getKey(), error.reason());
            boolean passing = !List.of("SchemaDecodeFailed", "Fenced").contains(kind.getKey());
            assertEquals(passing, error.retryable());
          }
          ErrorInfo said =
              ErrorInfo.newBuilder()
                  .setReason("StateLoadFailed")
                  .putMetadata("retryable", "false")
                  .build();
          refusing.refusals.add(refusal(Status.Code.DATA_LOSS, said));
          var error =
              assertThrows(BatonException.StateLoadFailed.class, () -> client.state().has("a"));
          assertFalse(error.retryable());
          BadRequest bad =
              BadRequest.newBuilder()
                  .addFieldViolations(
                      BadRequest.FieldViolation.newBuilder().setField("key").setDescription("long"))
                  .build();
          refusing.refusals.add(refusal(Status.Code.INVALID_ARGUMENT, bad));
          var invalid =
              assertThrows(BatonException.InvalidArgument.class, () -> client.state().has("a"));
          assertEquals(
              List.of(new BatonException.Violation("key", "long")), invalid.violations());
        });
  }

  /** Codes without details have classes too; details that are damaged are no second error. */
  @Test
  void codesBecomeErrors() throws Exception {
    Map<Status.Code, Class<? extends BatonException>> kinds =
        Map.of(
            Status.Code.NOT_FOUND, BatonException.NotFound.class,
            Status.Code.ALREADY_EXISTS, BatonException.AlreadyExists.class,
            Status.Code.ABORTED, BatonException.Conflict.class,
            Status.Code.FAILED_PRECONDITION, BatonException.FailedPrecondition.class,
            Status.Code.OUT_OF_RANGE, BatonException.OutOfRange.class,
            Status.Code.RESOURCE_EXHAUSTED, BatonException.LimitExceeded.class,
            Status.Code.UNAUTHENTICATED, BatonException.Unauthenticated.class,
            Status.Code.DEADLINE_EXCEEDED, BatonException.DeadlineExceeded.class,
            Status.Code.INTERNAL, BatonException.class);
    beside(
        (refusing, client) -> {
          for (var kind : kinds.entrySet()) {
            refusing.refusals.add(refusal(kind.getKey(), new byte[] {0x1a, 0x7f}));
            var error = assertThrows(BatonException.class, () -> client.state().has("a"));
            assertEquals(kind.getValue(), error.getClass());
            assertEquals(kind.getKey(), error.code().get());
            assertEquals("no", error.getMessage());
          }
        });
  }

  /** A thread that is interrupted gives its call up, and stays interrupted. */
  @Test
  void anInterruptEndsACall() throws Exception {
    beside(
        (refusing, client) -> {
          Thread.currentThread().interrupt();
          assertThrows(BatonException.Cancelled.class, () -> client.state().has("a"));
          assertTrue(Thread.interrupted());
        });
  }

  /** Repeating ends with the call's own time, not later. */
  @Test
  void aSidecarThatStaysAwayIsSaidSoInTime() {
    Connection connection = new Connection("127.0.0.1:1", null);
    StateHasRequest request = StateHasRequest.newBuilder().setKey("a").build();
    long begun = System.nanoTime();
    var error =
        assertThrows(
            BatonException.class,
            () ->
                connection.ask(StateGrpc.getHasMethod(), request, Duration.ofMillis(500)));
    assertTrue(error.retryable());
    assertTrue(System.nanoTime() - begun < 3_000_000_000L);
    connection.close();
  }

  /** G12: without its token neither side is answered; health needs none, as kubelet has none. */
  @Test
  void tokensAreCheckedBothWays() throws Exception {
    Path appToken = Files.writeString(directory.resolve("app"), "app-secret\n");
    Path apiToken = Files.writeString(directory.resolve("api"), "api-secret\n");
    try (FakeSidecar fake = new FakeSidecar("127.0.0.1:0", "api-secret");
        FakeSidecar stranger = new FakeSidecar();
        Baton app = new Baton()) {
      app.start(fake.options().withAppTokenFile(appToken).withApiTokenFile(apiToken));
      fake.callAppAt(app.address());
      fake.send(Connection.TOKEN, "app-secret");
      fake.lead();
      assertEquals(2, app.sidecar().leadership().list().count());
      stranger.callAppAt(app.address());
      stranger.send(Connection.TOKEN, "app-secreT");
      OnLoseLeadershipRequest loss = OnLoseLeadershipRequest.getDefaultInstance();
      var refused =
          assertThrows(
              StatusRuntimeException.class, () -> stranger.app().onLoseLeadership(loss));
      assertEquals(Status.Code.UNAUTHENTICATED, refused.getStatus().getCode());
      assertTrue(app.isLeader());
      var health = HealthGrpc.newBlockingStub(stranger.channel());
      for (String service : List.of("", "baton.v1.AppCallback")) {
        HealthCheckRequest check = HealthCheckRequest.newBuilder().setService(service).build();
        assertEquals(ServingStatus.SERVING, health.check(check).getStatus());
      }
      Files.writeString(apiToken, "wrong-now");
      assertThrows(
          BatonException.Unauthenticated.class, () -> app.sidecar().leadership().get("default"));
    }
  }

  /** The old token is accepted for a minute more; nothing opens with an empty one. */
  @Test
  void aTokenFileIsReadAgainWhenItChanges() throws Exception {
    Path path = Files.writeString(directory.resolve("token"), "one\n");
    ManualClock clock = new ManualClock();
    TokenFile token = new TokenFile(path, clock);
    assertTrue(token.accepts("one"));
    assertFalse(token.accepts("two"));
    assertFalse(token.accepts(null));
    Path replacement = Files.writeString(directory.resolve("new"), "two");
    Files.move(replacement, path, StandardCopyOption.REPLACE_EXISTING);
    assertTrue(token.accepts("two"));
    assertTrue(token.accepts("one"));
    clock.now += TokenFile.PREVIOUS_ACCEPTED_NANOS + 1;
    assertFalse(token.accepts("one"));
    Files.delete(path);
    assertEquals("two", token.current());
    for (String unusable : List.of("", "tökén", "three\nfour")) {
      Files.writeString(path, unusable);
      assertEquals("two", token.current());
      assertTrue(token.accepts("two"));
      assertFalse(token.accepts(unusable));
    }
  }

  /** G12: a token that was asked for and is not there never means: no token. */
  @Test
  void anEmptyOrMissingTokenFileStopsTheStart() throws Exception {
    Path empty = Files.writeString(directory.resolve("empty"), "\n");
    assertThrows(IllegalArgumentException.class, () -> TokenFile.of(empty));
    Path missing = directory.resolve("missing");
    assertThrows(UncheckedIOException.class, () -> TokenFile.of(missing));
  }

  /** Both sides may be socket files; one left behind is replaced, and the group is let in. */
  @Test
  void socketFiles() throws Exception {
    String socket = "unix://" + directory.resolve("app.sock");
    try (FakeSidecar fake = new FakeSidecar("unix://" + directory.resolve("api.sock"), null)) {
      for (int life = 0; life < 2; life++) {
        try (Baton app = new Baton()) {
          app.schedule("report", context -> Result.of(context.sidecar().state().has("a")));
          app.start(fake.options().withAppAddress(socket));
          assertEquals(socket, app.address());
          var mode = Files.getPosixFilePermissions(directory.resolve("app.sock"));
          assertEquals("rw-rw----", PosixFilePermissions.toString(mode));
          fake.callAppAt(socket);
          fake.lead();
          String result =
              fake.execute("report", null).getSucceeded().getResult().toStringUtf8();
          assertEquals("false", result);
          fake.channel().shutdownNow();
        }
      }
    }
  }

  /** Addresses and tokens come from the environment; empty means not set. */
  @Test
  void theEnvironment() {
    Options defaults = Options.from(Map.of("BATON_APP_TOKEN_FILE", ""));
    assertEquals("127.0.0.1:50051", defaults.appAddress());
    assertEquals("127.0.0.1:9401", defaults.apiAddress());
    assertEquals(null, defaults.appTokenFile());
    Options set =
        Options.from(
            Map.of(
                "BATON_APP_ADDRESS", "unix:///a",
                "BATON_API_ADDRESS", "unix:///b",
                "BATON_APP_TOKEN_FILE", "/c",
                "BATON_API_TOKEN_FILE", "/d"));
    assertEquals("unix:///a", set.appAddress());
    assertEquals("unix:///b", set.apiAddress());
    assertEquals(Path.of("/c"), set.appTokenFile());
    assertEquals(Path.of("/d"), set.apiTokenFile());
  }

  /** A second app on the same port or socket file is refused instead of taking the calls. */
  @Test
  void twoAppsNeverShareAnAddress() throws Exception {
    for (String address : List.of("127.0.0.1:0", "unix://" + directory.resolve("app.sock"))) {
      try (FakeSidecar fake = new FakeSidecar();
          Baton app = new Baton();
          Baton second = new Baton()) {
        assertThrows(BatonException.NotConnected.class, app::sidecar);
        app.start(fake.options().withAppAddress(address));
        Options same = fake.options().withAppAddress(app.address());
        assertThrows(IOException.class, () -> second.start(same));
      }
    }
  }

  /** A clock that stands still. */
  static final class ManualClock extends Clock {
    long now = 1;

    @Override
    long earliest() {
      return now;
    }

    @Override
    long latest() {
      return now;
    }

    @Override
    boolean isBoottime() {
      return true;
    }
  }
}
