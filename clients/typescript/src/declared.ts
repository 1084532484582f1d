/** Schedules and singletons declared in code: the keys of the configuration file, in the style of TypeScript. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { CatchUp, Overlap, type RetryPolicySchema } from "./gen/baton/v1/schedules_pb.js";
import type { ScheduleSchema } from "./gen/baton/v1/schedules_pb.js";
import type { StatePolicySchema } from "./gen/baton/v1/state_pb.js";
import type { DeclaredSingletonSchema } from "./gen/baton/v1/stream_pb.js";
import { type Timing, timingOf } from "./schedules.js";
import { durationOf, toBytes } from "./values.js";

/** How failed attempts are retried. */
export interface RetryOptions {
  /** Attempts in all, the first included; 3. */
  readonly attempts?: number;
  /** The wait before the second attempt; 1 s. It doubles with each further one. */
  readonly initialMs?: number;
  /** The longest wait; 1 minute. */
  readonly maxMs?: number;
}

/** The owned state of a schedule or singleton. */
export interface StateOptions {
  /** Raise it when the structure of the state changes; 1. */
  readonly version?: number;
  /** The state before the first run, as JSON; `{}`. */
  readonly initial?: unknown;
  /** JSON Schema, by which the stored state is decoded. */
  readonly schema?: object;
  /** The state expires this long after its last write; never. */
  readonly ttlMs?: number;
}

/** A schedule declared in code: when it ticks, and what the configuration file could say of it. */
export type ScheduleOptions = Timing & {
  /** IANA name of the time zone of `cron`; UTC. */
  readonly timezone?: string;
  readonly group?: string;
  readonly enabled?: boolean;
  /** Bytes as they are, anything else as JSON. */
  readonly payload?: unknown;
  readonly contentType?: string;
  readonly startAt?: Date;
  readonly endAt?: Date;
  readonly expectedIntervalMs?: number;
  readonly skipIfOlderThanMs?: number;
  readonly catchUp?: "latest" | "all" | "none";
  readonly catchUpMax?: number;
  readonly overlap?: "allow" | "skip" | "queue" | "replace";
  readonly retry?: RetryOptions;
  readonly timeoutMs?: number;
  readonly jitterMs?: number;
  readonly pingUrl?: string;
  readonly state?: StateOptions;
};

/** A singleton declared in code. */
export interface SingletonOptions {
  readonly group?: string;
  /** Stale without a heartbeat in twice this time; only the sidecar's own heartbeat is checked if it is not set. */
  readonly expectedIntervalMs?: number;
  /** A handler that returned is called again after this time; 5 s. */
  readonly restartAfterMs?: number;
  readonly state?: StateOptions;
}

const CATCH_UP = { latest: CatchUp.LATEST, all: CatchUp.ALL, none: CatchUp.NONE } as const;
const OVERLAP = {
  allow: Overlap.ALLOW,
  skip: Overlap.SKIP,
  queue: Overlap.QUEUE,
  replace: Overlap.REPLACE,
} as const;

/** The message of a declared schedule. */
export function scheduleOf(name: string, options: ScheduleOptions): Schedule {
  if (["cron", "everyMs", "at"].filter((key) => key in options).length !== 1) {
    throw new TypeError(`schedule '${name}' needs exactly one of cron, everyMs and at`);
  }
  const { timezone, group, enabled, contentType, catchUpMax, pingUrl } = options;
  const { payload, startAt, endAt, catchUp, overlap, retry, state } = options;
  return {
    name,
    timing: timingOf(options),
    ...given({ timezone, group, enabled, contentType, catchUpMax, pingUrl }),
    ...(payload !== undefined && { payload: toBytes(payload) }),
    ...(startAt && { startAt: timestampFromDate(startAt) }),
    ...(endAt && { endAt: timestampFromDate(endAt) }),
    ...durations({
      expectedInterval: options.expectedIntervalMs,
      skipIfOlderThan: options.skipIfOlderThanMs,
      timeout: options.timeoutMs,
      jitter: options.jitterMs,
    }),
    ...(catchUp && { catchUp: choice("catchUp", CATCH_UP, catchUp) }),
    ...(overlap && { overlap: choice("overlap", OVERLAP, overlap) }),
    ...(retry && { retry: retryOf(retry) }),
    ...(state && { state: stateOf(state) }),
  };
}

/** The message of a declared singleton. */
export function singletonOf(name: string, options: SingletonOptions): Singleton {
  const { group, expectedIntervalMs, restartAfterMs, state } = options;
  return {
    name,
    ...given({ group }),
    ...durations({ expectedInterval: expectedIntervalMs, restartAfter: restartAfterMs }),
    ...(state && { state: stateOf(state) }),
  };
}

/** The message of a retry policy. */
export function retryOf({ attempts, initialMs, maxMs }: RetryOptions): Retry {
  return { ...given({ attempts }), ...durations({ initial: initialMs, max: maxMs }) };
}

type Schedule = MessageInitShape<typeof ScheduleSchema>;
type Singleton = MessageInitShape<typeof DeclaredSingletonSchema>;
type Retry = MessageInitShape<typeof RetryPolicySchema>;
type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The fields that are set. */
export function given<T extends object>(fields: T): Given<T> {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as Given<T>;
}

/** The spans of time that are set, as messages. */
export function durations<K extends string>(fields: Record<K, number | undefined>) {
  const set = Object.entries<number | undefined>(fields).filter(([, ms]) => ms !== undefined);
  const messages = set.map(([name, ms = 0]) => [name, durationOf(ms)]);
  return Object.fromEntries(messages) as Partial<Record<K, ReturnType<typeof durationOf>>>;
}

/** One of a closed list; anything else is named in the error. */
export function choice<T extends object>(option: string, choices: T, value: keyof T): T[keyof T] {
  if (Object.hasOwn(choices, value)) return choices[value];
  throw new TypeError(`${option} must be one of ${Object.keys(choices).join(", ")}`);
}

function stateOf({ version, initial, schema, ttlMs }: StateOptions) {
  const policy: MessageInitShape<typeof StatePolicySchema> = {
    ...given({ version }),
    ...(initial !== undefined && { initial: toBytes(initial) }),
    ...(schema && { schema: toBytes(schema) }),
    ...durations({ ttl: ttlMs }),
  };
  return policy;
}
