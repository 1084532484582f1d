/** The first message of the stream: which process this is, and what it can execute. */
import type { Handlers } from "./handlers.js";
import type { Hello } from "./session.js";
import { VERSION } from "./version.js";

const CAPACITY = 1500;
const CAPACITY_MAX = 10_000;

/** What the user may set. */
export interface HelloOptions {
  /** How many runs this process takes at once, 1 to 10,000; 1,500. */
  readonly capacity?: number | undefined;
}

/** The message, of the handlers that are registered now. */
export function helloOf(
  handlers: Handlers,
  { capacity = CAPACITY }: HelloOptions,
  revision: bigint,
): Hello {
  if (!Number.isInteger(capacity) || capacity < 1 || capacity > CAPACITY_MAX) {
    throw new RangeError(`capacity must be an integer from 1 to ${CAPACITY_MAX}`);
  }
  return {
    client: `baton-typescript/${VERSION}`,
    processId: String(process.pid),
    capacity,
    singletons: [...handlers.singletons.keys()],
    schedules: [...handlers.schedules.keys()],
    jobs: [...handlers.jobs.keys()],
    declaredSchedules: handlers.declaredSchedules,
    declaredSingletons: handlers.declaredSingletons,
    revision,
  };
}

/** The revision given, else BATON_REVISION, else 0: by the time at which the declarations were first seen. */
export function revisionOf(given: number | bigint | undefined): bigint {
  const text = String(given ?? (process.env.BATON_REVISION || "0"));
  if (/^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n) return BigInt(text);
  throw new RangeError(`revision must be an integer from 0 to 2^64 - 1, not '${text}'`);
}
