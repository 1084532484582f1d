/**
 * The TypeScript client of the Baton sidecar.
 *
 * `Baton` is the app object: register handlers and hooks on it, then `run()` it beside a sidecar. `Sidecar`
 * alone is for programs that only call the sidecar. Messages of the contract are in `baton-client/v1/*`.
 */
export {
  type AppOptions,
  type AttachOptions,
  Baton,
  type RunOptions,
  type ServeOptions,
} from "./app.js";
export type { RetryOptions, ScheduleOptions, SingletonOptions, StateOptions } from "./declared.js";
export { enqueue, type EnqueueTarget, type Queryable } from "./enqueue.js";
export type { Handler, JobHandler } from "./handlers.js";
export type { JobDefaults, JobOptions, JobRequest, Priority, UniqueOptions } from "./job_spec.js";
export type { JobFilter, Jobs, JobSelection, Submitted, SubmitOptions } from "./jobs.js";
export type { CallOptions } from "./connection.js";
export { Context, JobRun, OwnedState } from "./context.js";
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
export {
  Fail,
  type FailureOptions,
  Result,
  type ResultOptions,
  Retry,
  Skip,
  Snooze,
  type SnoozeOptions,
} from "./outcomes.js";
export type { Progress } from "./runs.js";
export type { Definition, Timing } from "./schedules.js";
export { type ClusterContext, clusterContext, nextId } from "./scope.js";
export { type ConnectOptions, Sidecar } from "./sidecar.js";
export { type Change, Entry, type PutOptions, type RunRef, State } from "./state.js";
export type { Violation } from "./status.js";
export { type Codec, jsonCodec } from "./values.js";
