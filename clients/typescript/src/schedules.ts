/** Schedules: making, changing, steering and previewing them. */
import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Connection, pages } from "./connection.js";
import {
  type Schedule,
  type ScheduleSchema,
  Schedules as Service,
} from "./gen/baton/v1/schedules_pb.js";
import { present } from "./present.js";
import { durationOf, toBytes } from "./values.js";

const {
  create,
  get,
  list,
  update,
  delete: del,
  pause,
  resume,
  trigger,
  backfill,
  preview,
} = Service.method;

type Fields = MessageInitShape<typeof ScheduleSchema>;

/** When a schedule ticks: exactly one of these. */
export type Timing =
  { readonly cron: string } | { readonly everyMs: number } | { readonly at: Date };

/** A schedule to be made: its name, its timing, and any other field of the message `Schedule`. */
export type Definition = { readonly name: string } & Timing &
  Omit<Fields, "$typeName" | "$unknown" | "name" | "timing" | "payload"> & {
    /** Bytes as they are, anything else as JSON. */
    readonly payload?: unknown;
  };

/** The schedules of the cluster; works on any pod. */
export class Schedules {
  constructor(private readonly connection: Connection) {}

  /** Makes a schedule; ticks count from now on. */
  async create(definition: Definition, { signal }: CallOptions = {}): Promise<Schedule> {
    const request = { schedule: fieldsOf(definition) };
    return present(
      (await this.connection.call(create, request, { signal, repeatable: false })).schedule,
    );
  }

  /** One schedule, also a retired one. */
  async get(name: string, options?: CallOptions): Promise<Schedule> {
    return present((await this.connection.call(get, { name }, options)).schedule);
  }

  /** Schedules, by name. */
  async *list({
    includeRetired = false,
    signal,
  }: CallOptions & { readonly includeRetired?: boolean } = {}): AsyncGenerator<Schedule> {
    const ask = (pageToken: string) =>
      this.connection.call(list, { includeRetired, pageToken }, { signal });
    for await (const page of pages(ask)) yield* page.schedules;
  }

  /** Replaces the whole definition of the schedule of that name. */
  async update(definition: Definition, options?: CallOptions): Promise<Schedule> {
    const request = { schedule: fieldsOf(definition) };
    return present((await this.connection.call(update, request, options)).schedule);
  }

  /** Retires a schedule. */
  async delete(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.connection.call(del, { name }, { signal, repeatable: false });
  }

  /** Stops a schedule until `resume`; the note is for whoever finds it so. */
  async pause(name: string, note = "", options?: CallOptions): Promise<Schedule> {
    return present((await this.connection.call(pause, { name, note }, options)).schedule);
  }

  /** Ends a pause. */
  async resume(name: string, options?: CallOptions): Promise<Schedule> {
    return present((await this.connection.call(resume, { name }, options)).schedule);
  }

  /** Runs it once, now; the id of the run. Without a payload: the schedule's own. */
  async trigger(
    name: string,
    payload?: unknown,
    { requestId = randomUUID(), signal }: CallOptions & { readonly requestId?: string } = {},
  ): Promise<bigint> {
    const request = {
      name,
      requestId,
      ...(payload !== undefined && { payload: toBytes(payload) }),
    };
    return (await this.connection.call(trigger, request, { signal })).runId;
  }

  /** Runs the ticks of a past range that have no outcome; the ids of the runs made. */
  async backfill(
    name: string,
    range: { readonly from: Date; readonly to: Date },
    { signal }: CallOptions = {},
  ): Promise<bigint[]> {
    const fromAt = timestampFromDate(range.from);
    const request = { name, fromAt, toAt: timestampFromDate(range.to) };
    return (await this.connection.call(backfill, request, { signal, repeatable: false })).runIds;
  }

  /** The next ticks of a stored schedule, by name, or of one that is not stored. */
  async preview(
    schedule: string | Definition,
    { n = 10, after, signal }: CallOptions & { readonly n?: number; readonly after?: Date } = {},
  ): Promise<Date[]> {
    const target =
      typeof schedule === "string"
        ? { case: "name" as const, value: schedule }
        : { case: "schedule" as const, value: fieldsOf(schedule) };
    const request = { target, n, ...(after && { after: timestampFromDate(after) }) };
    return (await this.connection.call(preview, request, { signal })).ticks.map(timestampDate);
  }
}

function fieldsOf(definition: Definition) {
  const { payload, ...rest } = definition;
  const fields = rest as Omit<Fields, "$typeName">;
  return {
    ...fields,
    timing: timingOf(definition),
    ...(payload !== undefined && { payload: toBytes(payload) }),
  };
}

/** The timing as a message has it. */
export function timingOf(timing: Timing) {
  if ("cron" in timing) return { case: "cron" as const, value: timing.cron };
  if ("at" in timing) return { case: "at" as const, value: timestampFromDate(timing.at) };
  return { case: "every" as const, value: durationOf(timing.everyMs) };
}
