/**
 * The TypeScript client of the Baton sidecar.
 *
 * `Baton` is the app object: register handlers and hooks on it, then `run()` it beside a sidecar. `Sidecar`
 * alone is for programs that only call the sidecar. Messages of the contract are in `baton-client/v1/*`.
 */
export { type AttachOptions, Baton, type RunOptions, type ServeOptions } from "./app.js";
export type { Handler } from "./handlers.js";
export type { CallOptions } from "./connection.js";
export { Context, OwnedState } from "./context.js";
export { Deferred } from "./deferreds.js";
export {
  AlreadyExists,
  BatonError,
  Cancelled,
  ClusterContextRequired,
  Conflict,
  DeadlineExceeded,
  DeferredFailed,
  FailedPrecondition,
  Fenced,
  HeartbeatFailed,
  InvalidArgument,
  LeaderHandoffFailed,
  LimitExceeded,
  NotConnected,
  NotFound,
  OutOfRange,
  SchemaDecodeFailed,
  StateLoadFailed,
  StatePersistFailed,
  Unauthenticated,
  Unavailable,
} from "./errors.js";
export type { BecomeHook, LoseHook, Reason } from "./leading.js";
export type { Log } from "./log.js";
export { Fail, type FailureOptions, Result, Retry, Skip } from "./outcomes.js";
export type { Progress } from "./runs.js";
export type { Definition, Timing } from "./schedules.js";
export { type ClusterContext, clusterContext, nextId } from "./scope.js";
export { type ConnectOptions, Sidecar } from "./sidecar.js";
export { type Change, Entry, type PutOptions, type RunRef, State } from "./state.js";
export type { Violation } from "./status.js";
export { type Codec, jsonCodec } from "./values.js";
