/**
 * Every error of this package, in one tree. Each says whether asking again may help (`retryable`).
 *
 *     BatonError
 *     ├── Unavailable              the sidecar or its Postgres is away         retry
 *     ├── DeadlineExceeded         no answer in time; it may have happened     retry
 *     ├── Cancelled                this attempt was ended: the reason of its signal
 *     ├── NotFound
 *     ├── AlreadyExists            there is one, and it differs
 *     ├── Conflict                 a lost compare-and-set: read again, then try again
 *     ├── FailedPrecondition       the thing is in no state for this call
 *     │   └── Fenced               this run's attempt or term is over: stop the work
 *     ├── InvalidArgument          `violations` names each wrong field
 *     ├── OutOfRange               a watch asked for changes no longer known: after 0n again
 *     ├── LimitExceeded            a documented limit
 *     ├── Unauthenticated          the token is missing or wrong
 *     ├── StateLoadFailed          retry
 *     ├── StatePersistFailed       retry
 *     ├── SchemaDecodeFailed
 *     ├── HeartbeatFailed          retry
 *     ├── LeaderHandoffFailed      retry
 *     ├── DeferredFailed           what was awaited was failed, or has expired
 *     ├── ClusterContextRequired   called outside a handler or hook
 *     └── NotConnected             the app is not being served
 *
 * What the sidecar says in the details of a gRPC status (`reason`, `retryable`, `retryAfterMs`) goes before
 * what is given here.
 */
import { type ServiceError, status } from "@grpc/grpc-js";
import { type StatusDetails, statusDetails, type Violation } from "./status.js";

/** Where an error comes from. */
export interface Origin {
  readonly code?: status;
  readonly details?: StatusDetails;
  readonly cause?: unknown;
}

/** Base of all errors of this package. */
export class BatonError extends Error {
  protected static readonly retryable: boolean = false;

  /** The gRPC status of the call that failed, if it was one. */
  readonly code: status | undefined;
  /** Stable, for programs: the reason given by the sidecar, else the name of the class. */
  readonly reason: string;
  /** Whether asking again may help. */
  readonly retryable: boolean;
  /** When to ask again, as the sidecar said. */
  readonly retryAfterMs: number | undefined;
  /** Each wrong field of a request that was refused. */
  readonly violations: readonly Violation[];

  constructor(message: string, { code, details = {}, cause }: Origin = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.reason = details.reason ?? new.target.name;
    this.retryable = details.retryable ?? new.target.retryable;
    this.retryAfterMs = details.retryAfterMs;
    this.violations = details.violations ?? [];
  }
}

/** The sidecar or its database cannot be reached now. */
export class Unavailable extends BatonError {
  protected static override readonly retryable = true;
}

/** No answer came in time; whether the call took effect is not known. */
export class DeadlineExceeded extends BatonError {
  protected static override readonly retryable = true;
}

/** The attempt was ended: by the sidecar, or because its term is over. */
export class Cancelled extends BatonError {}

/** What was named does not exist. */
export class NotFound extends BatonError {}

/** There is one already, and it differs; it is left standing. */
export class AlreadyExists extends BatonError {}

/** The entry has another version than expected; nothing was changed. */
export class Conflict extends BatonError {}

/** The thing exists but is in no state for this call. */
export class FailedPrecondition extends BatonError {}

/** The attempt on whose behalf this was is no longer the live one: stop its work. */
export class Fenced extends FailedPrecondition {}

/** The sidecar refused what was sent; `violations` names each wrong field. */
export class InvalidArgument extends BatonError {}

/** The changes asked for are no longer known: watch again, after version 0n. */
export class OutOfRange extends BatonError {}

/** A documented limit was reached; the message names it. */
export class LimitExceeded extends BatonError {}

/** The token for the sidecar is missing or wrong. */
export class Unauthenticated extends BatonError {}

/** Stored state could not be read. */
export class StateLoadFailed extends BatonError {
  protected static override readonly retryable = true;
}

/** State could not be written; nothing was acknowledged. */
export class StatePersistFailed extends BatonError {
  protected static override readonly retryable = true;
}

/** Stored bytes do not fit what they should be. */
export class SchemaDecodeFailed extends BatonError {}

/** A heartbeat could not be written. */
export class HeartbeatFailed extends BatonError {
  protected static override readonly retryable = true;
}

/** Leadership could not be taken or given up as asked. */
export class LeaderHandoffFailed extends BatonError {
  protected static override readonly retryable = true;
}

/** The deferred was completed with an error, or expired. */
export class DeferredFailed extends BatonError {}

/** There is no cluster context here: call it below a handler or a hook. */
export class ClusterContextRequired extends BatonError {}

/** There is no connection to the sidecar: start the app, or connect, first. */
export class NotConnected extends BatonError {}

type Kind = new (message: string, origin?: Origin) => BatonError;

const BY_CODE: ReadonlyMap<status, Kind> = new Map<status, Kind>([
  [status.UNAVAILABLE, Unavailable],
  [status.DEADLINE_EXCEEDED, DeadlineExceeded],
  [status.CANCELLED, Unavailable], // what we cancel is never answered: the sidecar is going away
  [status.NOT_FOUND, NotFound],
  [status.ALREADY_EXISTS, AlreadyExists],
  [status.ABORTED, Conflict],
  [status.FAILED_PRECONDITION, FailedPrecondition],
  [status.INVALID_ARGUMENT, InvalidArgument],
  [status.OUT_OF_RANGE, OutOfRange],
  [status.RESOURCE_EXHAUSTED, LimitExceeded],
  [status.UNAUTHENTICATED, Unauthenticated],
]);

const BY_REASON: ReadonlyMap<string, Kind> = new Map<string, Kind>(
  Object.entries({
    StateLoadFailed,
    StatePersistFailed,
    SchemaDecodeFailed,
    HeartbeatFailed,
    LeaderHandoffFailed,
    Fenced,
  }),
);

/** The typed error for a failed call; a refused run reference always means `Fenced`. */
export function errorOf(error: ServiceError, options?: Behalf): BatonError {
  return errorOfStatus(error.code, error.details, options, statusDetails(error.metadata));
}

interface Behalf {
  readonly onBehalfOfRun?: boolean;
}

/** The typed error for a status, of a call or inside the stream. */
export function errorOfStatus(
  number: number,
  message: string,
  { onBehalfOfRun = false }: Behalf = {},
  details: StatusDetails = {},
): BatonError {
  const code = status[(status[number] ?? "UNKNOWN") as keyof typeof status];
  let kind = BY_REASON.get(details.reason ?? "") ?? BY_CODE.get(code) ?? BatonError;
  if (onBehalfOfRun && kind === FailedPrecondition) kind = Fenced;
  return new kind(message || status[code], { code, details });
}

/** Whether the sidecar, or its database, was away. */
export function isAway(error: unknown): error is BatonError {
  if (!(error instanceof BatonError)) return false;
  return error.code === status.UNAVAILABLE || error.code === status.CANCELLED;
}

/** An error in one line, for the log. */
export function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
