/** A job to submit: what the user says, and the message that is sent. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { choice, durations, given, retryOf, type RetryOptions } from "./declared.js";
import { JobConflict, JobPriority, type JobSpecSchema } from "./gen/baton/v1/job_types_pb.js";
import { durationOf, toBytes } from "./values.js";

const PRIORITIES = {
  critical: JobPriority.CRITICAL,
  high: JobPriority.HIGH,
  normal: JobPriority.NORMAL,
  low: JobPriority.LOW,
} as const;
const CONFLICTS = {
  existing: JobConflict.EXISTING,
  replace: JobConflict.REPLACE,
  reject: JobConflict.REJECT,
} as const;

/** How much a job weighs against others: 4, 3, 2, 1. */
export type Priority = keyof typeof PRIORITIES;

/** What `app.job` gives to every job of its name that this app submits. */
export interface JobDefaults {
  /** `default`. */
  readonly queue?: string;
  /** `normal`. */
  readonly priority?: Priority;
  /** That of the queue, else 3 attempts, 1 s, 1 minute. */
  readonly retry?: RetryOptions;
  /** How long an attempt may take; that of the queue, else no limit. */
  readonly timeoutMs?: number;
}

/** At most one job of a name and key, while one is live or within a time. */
export interface UniqueOptions {
  /** What must be unique among the jobs of one name; the payload. */
  readonly key?: string;
  /** Since when an earlier job counts; while it is live. */
  readonly windowMs?: number;
  /** What happens to the new job if there is an earlier one; `existing`. */
  readonly onConflict?: keyof typeof CONFLICTS;
}

/** How a job is submitted. */
export interface JobOptions extends JobDefaults {
  /** When it is due; now. */
  readonly dueAt?: Date;
  /** Or after this time. */
  readonly delayMs?: number;
  /** Not started by then: skipped. */
  readonly expiresAt?: Date;
  /** Jobs with the same name and key run one at a time, in order, and share state. */
  readonly key?: string;
  readonly unique?: UniqueOptions;
  /** Labels to filter by; at most 16. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Jobs of one batch are counted together. */
  readonly batch?: string;
  readonly contentType?: string;
}

/** One job of `submitMany`, or one that is submitted with an outcome. */
export interface JobRequest extends JobOptions {
  readonly name: string;
  /** Bytes as they are, anything else as JSON. */
  readonly payload?: unknown;
}

/** The defaults of the jobs of a name. */
export type DefaultsOf = (name: string) => JobDefaults | undefined;

/** The job with the defaults of its name. */
export function completed(request: JobRequest, defaultsOf: DefaultsOf): JobRequest {
  const job = { ...defaultsOf(request.name), ...given(request) } as JobRequest;
  if (job.dueAt && job.delayMs !== undefined) {
    throw new TypeError(`job '${job.name}': give either dueAt or delayMs`);
  }
  if (job.priority) choice("priority", PRIORITIES, job.priority);
  if (job.unique?.onConflict) choice("unique.onConflict", CONFLICTS, job.unique.onConflict);
  return job;
}

/** The message of a job. */
export function specOf(request: JobRequest, defaultsOf: DefaultsOf) {
  const job = completed(request, defaultsOf);
  const { name, payload, queue, key, batch, contentType, labels } = job;
  const { priority, expiresAt, unique, retry, timeoutMs } = job;
  const spec: MessageInitShape<typeof JobSpecSchema> = {
    name,
    ...given({ queue, key, batch, contentType }),
    ...(labels && { labels: { ...labels } }),
    ...(payload !== undefined && { payload: toBytes(payload) }),
    ...(priority && { priority: PRIORITIES[priority] }),
    ...dueOf(job),
    ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }),
    ...(unique && { unique: uniqueOf(unique) }),
    ...(retry && { retry: retryOf(retry) }),
    ...durations({ timeout: timeoutMs }),
  };
  return spec;
}

function dueOf({ dueAt, delayMs }: JobOptions) {
  if (dueAt) return { due: { case: "dueAt" as const, value: timestampFromDate(dueAt) } };
  if (delayMs === undefined) return {};
  return { due: { case: "delay" as const, value: durationOf(delayMs) } };
}

function uniqueOf({ key, windowMs, onConflict = "existing" }: UniqueOptions) {
  return {
    ...given({ key }),
    ...durations({ window: windowMs }),
    onConflict: CONFLICTS[onConflict],
  };
}

/** The name of a priority; one that the contract does not name is `normal`. */
export function priorityOf(priority: JobPriority): Priority {
  const names = Object.keys(PRIORITIES) as Priority[];
  return names.find((name) => PRIORITIES[name] === priority) ?? "normal";
}
