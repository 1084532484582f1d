/**
 * What a handler says by returning or throwing, and how it is told to the sidecar.
 *
 *     returns nothing, JSON or bytes      succeeded, with that result
 *     returns new Result(result, state)   succeeded; the owned state is replaced in the same transaction
 *     throws new Skip(reason)             the app declines this run: no retry, no error
 *     throws new Retry(message)           failed; try again, no earlier than `afterMs`
 *     throws new Fail(message)            failed for good
 *     throws anything else                failed; may be tried again
 *
 * The text of an unexpected error may hold secrets, so only its type is told; the whole of it is in the
 * app's own log.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ExecuteResponse, ExecuteResponseSchema } from "./gen/baton/v1/callback_pb.js";
import { durationOf, toBytes } from "./values.js";

type Outcome = NonNullable<MessageInitShape<typeof ExecuteResponseSchema>["outcome"]>;

/** A success with a result and a new owned state; without one the state stays as it is. */
export class Result {
  constructor(
    readonly result?: unknown,
    readonly state?: unknown,
  ) {}
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
export function isMeant(error: unknown): error is Skip | Retry | Fail {
  return error instanceof Skip || error instanceof Retry || error instanceof Fail;
}

/** The answer for what a handler returned. */
export function success(returned: unknown): ExecuteResponse {
  const { result, state } = returned instanceof Result ? returned : new Result(returned);
  const value = { ...(result !== undefined && { result: toBytes(result) }), ...stateOf(state) };
  return response({ case: "succeeded", value });
}

/** The answer for what a handler threw. */
export function failure(error: unknown): ExecuteResponse {
  if (error instanceof Skip) return response({ case: "skipped", value: { reason: error.reason } });
  try {
    return error instanceof Retry || error instanceof Fail ? meant(error) : unexpected(error);
  } catch (unsendable) {
    return unexpected(unsendable); // its state is nothing that JSON can say
  }
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

function unexpected(error: unknown): ExecuteResponse {
  const name = kindOf(error);
  const value = { message: `unhandled ${name}`, code: name.slice(0, 255), retryable: true };
  return response({ case: "failed", value });
}

/** The type of an error, which is all of it that leaves the process. */
export function kindOf(error: unknown): string {
  return error instanceof Error ? error.constructor.name || "Error" : typeof error;
}

function response(outcome: Outcome): ExecuteResponse {
  return create(ExecuteResponseSchema, { outcome });
}

function stateOf(state: unknown) {
  return state !== undefined && { state: toBytes(state) };
}
