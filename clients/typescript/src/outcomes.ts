/**
 * What a handler says by returning or throwing, and how it is told to the sidecar.
 *
 *     returns nothing, JSON or bytes      succeeded, with that result
 *     returns new Result(result, state)   succeeded; the owned state is replaced in the same transaction,
 *                                         and the jobs given are submitted in it
 *     throws new Skip(reason)             the app declines this run: no retry, no error
 *     throws new Retry(message)           failed; try again, no earlier than `afterMs`
 *     throws new Fail(message)            failed for good
 *     throws new Snooze({ afterMs })      only a job: delivered again later, no retry used
 *     throws anything else                failed; may be tried again
 *
 * Type and message of an unexpected error are sent, so that they are in the run's record. The message may hold
 * secrets: with `hideErrors` only the type is sent. The whole of it is in the app's own log.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ExecuteResponse, ExecuteResponseSchema } from "./gen/baton/v1/callback_pb.js";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type DefaultsOf, type JobRequest, specOf } from "./job_spec.js";
import { durationOf, toBytes } from "./values.js";

const MESSAGE_BYTES = 4096;
const CODE_LENGTH = 255;

type Outcome = NonNullable<MessageInitShape<typeof ExecuteResponseSchema>["outcome"]>;

/** What a success may carry besides its result and state. */
export interface ResultOptions {
  /** Jobs that are submitted in the same transaction as the outcome; at most 100. */
  readonly jobs?: readonly JobRequest[];
}

/** A success with a result and a new owned state; without one the state stays as it is. */
export class Result {
  constructor(
    readonly result?: unknown,
    readonly state?: unknown,
    readonly options: ResultOptions = {},
  ) {}
}

/** When a snoozed job is delivered again, and its new owned state. */
export type SnoozeOptions = ({ readonly afterMs: number } | { readonly until: Date }) & {
  readonly state?: unknown;
};

/** This job is delivered again later; it uses no retry, and its slot is free meanwhile. */
export class Snooze extends Error {
  constructor(readonly options: SnoozeOptions) {
    super("snoozed");
    this.name = "Snooze";
  }
}

/** The app declines this run. */
export class Skip extends Error {
  constructor(readonly reason = "") {
    super(reason);
    this.name = "Skip";
  }
}

/** What a failure may say beyond its message. */
export interface FailureOptions {
  /** A short code of the app's own, for programs. */
  readonly code?: string;
  /** The new owned state, committed although the attempt failed. */
  readonly state?: unknown;
}

/** This run failed for good. */
export class Fail extends Error {
  constructor(
    message: string,
    readonly options: FailureOptions = {},
  ) {
    super(message);
    this.name = "Fail";
  }
}

/** This attempt failed; another may do better, `afterMs` from now at the earliest. */
export class Retry extends Error {
  constructor(
    message = "try again",
    readonly options: FailureOptions & { readonly afterMs?: number } = {},
  ) {
    super(message);
    this.name = "Retry";
  }
}

/** Whether a handler threw this on purpose. */
export function isMeant(error: unknown): error is Skip | Retry | Fail | Snooze {
  return [Skip, Retry, Fail, Snooze].some((kind) => error instanceof kind);
}

/** The answer for what a handler returned. */
export function success(returned: unknown, defaultsOf: DefaultsOf): ExecuteResponse {
  const { result, state, options } = returned instanceof Result ? returned : new Result(returned);
  const jobs = options.jobs?.map((job) => specOf(job, defaultsOf));
  const value = {
    ...(result !== undefined && { result: toBytes(result) }),
    ...stateOf(state),
    ...(jobs && { jobs }),
  };
  return response({ case: "succeeded", value });
}

/** The answer for what a handler threw. */
export function failure(error: unknown, hideErrors: boolean): ExecuteResponse {
  if (error instanceof Skip) return response({ case: "skipped", value: { reason: error.reason } });
  try {
    if (error instanceof Snooze) return snoozed(error.options);
    if (error instanceof Retry || error instanceof Fail) return meant(error);
    return unexpected(error, hideErrors);
  } catch (unsendable) {
    return unexpected(unsendable, hideErrors); // its state cannot be written as JSON
  }
}

function snoozed(options: SnoozeOptions): ExecuteResponse {
  const until =
    "until" in options
      ? { case: "at" as const, value: timestampFromDate(options.until) }
      : { case: "after" as const, value: durationOf(options.afterMs) };
  return response({ case: "snoozed", value: { until, ...stateOf(options.state) } });
}

function meant(error: Retry | Fail): ExecuteResponse {
  const { code = "", state } = error.options;
  const afterMs = error instanceof Retry ? error.options.afterMs : undefined;
  const value = {
    message: error.message,
    code,
    retryable: error instanceof Retry,
    ...(afterMs !== undefined && { retryAfter: durationOf(afterMs) }),
    ...stateOf(state),
  };
  return response({ case: "failed", value });
}

function unexpected(error: unknown, hideErrors: boolean): ExecuteResponse {
  const name = kindOf(error);
  const text = error instanceof Error ? error.message : String(error);
  const message = hideErrors ? `unhandled ${name}` : cut(`${name}: ${text}`);
  return response({
    case: "failed",
    value: { message, code: name.slice(0, CODE_LENGTH), retryable: true },
  });
}

/** At most 4 KiB of UTF-8, and no half character at the end. */
function cut(text: string): string {
  const bytes = new Uint8Array(MESSAGE_BYTES);
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return text.slice(0, read);
}

/** The type of an error. */
export function kindOf(error: unknown): string {
  return error instanceof Error ? error.constructor.name || "Error" : typeof error;
}

function response(outcome: Outcome): ExecuteResponse {
  return create(ExecuteResponseSchema, { outcome });
}

function stateOf(state: unknown) {
  return state !== undefined && { state: toBytes(state) };
}
