package dev.baton;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.baton.BatonException.Failure;
import dev.baton.BatonException.Violation;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Makes a typed error of a gRPC status. Details that cannot be read are left out: an error about an
 * error helps nobody.
 */
final class Errors {
  static final Metadata.Key<byte[]> DETAILS =
      Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

  private static final Map<String, Function<Failure, BatonException>> BY_REASON =
      Map.of(
          "StateLoadFailed", BatonException.StateLoadFailed::new,
          "StatePersistFailed", BatonException.StatePersistFailed::new,
          "SchemaDecodeFailed", BatonException.SchemaDecodeFailed::new,
          "HeartbeatFailed", BatonException.HeartbeatFailed::new,
          "LeaderHandoffFailed", BatonException.LeaderHandoffFailed::new,
          "Fenced", BatonException.Fenced::new);

  private Errors() {}

  /** The typed error for a failed call; a refused run reference always means Fenced. */
  static BatonException of(StatusRuntimeException error, boolean onBehalfOfRun) {
    Failure failure = read(error);
    Function<Failure, BatonException> kind = BY_REASON.get(failure.reason());
    if (kind != null) {
      return kind.apply(failure);
    }
    if (onBehalfOfRun && failure.code() == Status.Code.FAILED_PRECONDITION) {
      return new BatonException.Fenced(failure);
    }
    return byCode(failure);
  }

  private static BatonException byCode(Failure failure) {
    return switch (failure.code()) {
      case UNAVAILABLE -> new BatonException.Unavailable(failure);
      case DEADLINE_EXCEEDED -> new BatonException.DeadlineExceeded(failure);
      case CANCELLED -> new BatonException.Cancelled(failure);
      case NOT_FOUND -> new BatonException.NotFound(failure);
      case ALREADY_EXISTS -> new BatonException.AlreadyExists(failure);
      case ABORTED -> new BatonException.Conflict(failure);
      case FAILED_PRECONDITION -> new BatonException.FailedPrecondition(failure);
      case INVALID_ARGUMENT -> new BatonException.InvalidArgument(failure);
      case OUT_OF_RANGE -> new BatonException.OutOfRange(failure);
      case RESOURCE_EXHAUSTED -> new BatonException.LimitExceeded(failure);
      case UNAUTHENTICATED -> new BatonException.Unauthenticated(failure);
      default -> new BatonException(failure);
    };
  }

  private static Failure read(StatusRuntimeException error) {
    Status status = error.getStatus();
    String text = status.getDescription();
    String message = text == null ? status.getCode().name() : text;
    Failure plain = new Failure(message, status.getCode(), "", null, null, List.of(), error);
    Metadata trailers = error.getTrailers();
    byte[] details = trailers == null ? null : trailers.get(DETAILS);
    if (details == null) {
      return plain;
    }
    try {
      return detailed(plain, com.google.rpc.Status.parseFrom(details).getDetailsList());
    } catch (InvalidProtocolBufferException damaged) {
      return plain;
    }
  }

  private static Failure detailed(Failure plain, List<Any> details)
      throws InvalidProtocolBufferException {
    String reason = "";
    Boolean retryable = null;
    Duration retryAfter = null;
    List<Violation> violations = List.of();
    for (Any detail : details) {
      if (detail.is(ErrorInfo.class)) {
        ErrorInfo info = detail.unpack(ErrorInfo.class);
        reason = info.getReason();
        String said = info.getMetadataMap().get("retryable");
        retryable = said == null ? null : Boolean.valueOf(said);
      } else if (detail.is(RetryInfo.class)) {
        retryAfter = Times.duration(detail.unpack(RetryInfo.class).getRetryDelay());
      } else if (detail.is(BadRequest.class)) {
        violations =
            detail.unpack(BadRequest.class).getFieldViolationsList().stream()
                .map(found -> new Violation(found.getField(), found.getDescription()))
                .toList();
      }
    }
    return new Failure(
        plain.message(), plain.code(), reason, retryable, retryAfter, violations, plain.cause());
  }
}
