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
export function helloOf(handlers: Handlers, { capacity = CAPACITY }: HelloOptions): Hello {
  if (!Number.isInteger(capacity) || capacity < 1 || capacity > CAPACITY_MAX) {
    throw new RangeError(`capacity must be an integer from 1 to ${CAPACITY_MAX}`);
  }
  return {
    client: `baton-typescript/${VERSION}`,
    processId: String(process.pid),
    capacity,
    singletons: [...handlers.singletons.keys()],
    schedules: [...handlers.schedules.keys()],
  };
}
