/** The deferreds and schedules of the fake. */
import { create, type MessageShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import {
  type Deferred,
  type Deferreds,
  DeferredSchema,
  DeferredState,
} from "../../src/gen/baton/v1/deferreds_pb.js";
import type { RunRef } from "../../src/gen/baton/v1/runs_pb.js";
import type { Schedules, ScheduleSchema } from "../../src/gen/baton/v1/schedules_pb.js";
import { type Methods, Refused } from "./serving.js";

const AWAIT_MS = 20;

function found<T>(thing: T | undefined): T {
  if (thing === undefined) throw new Refused(status.NOT_FOUND);
  return thing;
}

/** One that has a time to live has expired already. */
export class FakeDeferreds {
  readonly #all = new Map<string, Deferred>();

  constructor(private readonly requireLive: (run: RunRef) => unknown) {}

  readonly methods: Methods<typeof Deferreds> = {
    create: ({ name, run, ttl }) => {
      if (run) this.requireLive(run);
      const token = `${run?.runId ?? 0n}/${name}`;
      const state = ttl ? DeferredState.EXPIRED : DeferredState.PENDING;
      if (!this.#all.has(token))
        this.#all.set(token, create(DeferredSchema, { token, name, state }));
      return { token };
    },
    await: async ({ token }) => {
      await new Promise((go) => setTimeout(go, AWAIT_MS));
      const deferred = found(this.#all.get(token));
      if (deferred.state === DeferredState.PENDING) throw new Refused(status.DEADLINE_EXCEEDED);
      return { deferred };
    },
    complete: ({ token, value }) => ({
      deferred: this.#end(token, { state: DeferredState.COMPLETED, value }),
    }),
    fail: ({ token, error }) => ({
      deferred: this.#end(token, { state: DeferredState.FAILED, error }),
    }),
    get: ({ token }) => ({ deferred: found(this.#all.get(token)) }),
  };

  #end(token: string, end: Partial<Deferred>): Deferred {
    const deferred = found(this.#all.get(token));
    if (deferred.state !== DeferredState.PENDING) throw new Refused(status.ALREADY_EXISTS);
    return Object.assign(deferred, end);
  }
}

/** Keeps definitions; a trigger answers with the size of its payload, a preview with milliseconds. */
export class FakeSchedules {
  readonly #all = new Map<string, MessageShape<typeof ScheduleSchema>>();

  readonly methods: Methods<typeof Schedules> = {
    create: ({ schedule }) => {
      if (!schedule || this.#all.has(schedule.name)) throw new Refused(status.ALREADY_EXISTS);
      this.#all.set(schedule.name, schedule);
      return { schedule };
    },
    get: ({ name }) => ({ schedule: found(this.#all.get(name)) }),
    list: () => ({ schedules: [...this.#all.values()] }),
    update: ({ schedule }) => {
      found(this.#all.get(schedule?.name ?? ""));
      this.#all.set(schedule?.name ?? "", found(schedule));
      return { schedule: found(schedule) };
    },
    delete: ({ name }) => {
      if (!this.#all.delete(name)) throw new Refused(status.NOT_FOUND);
      return {};
    },
    pause: ({ name, note }) => ({
      schedule: Object.assign(found(this.#all.get(name)), { paused: true, pauseNote: note }),
    }),
    resume: ({ name }) => ({
      schedule: Object.assign(found(this.#all.get(name)), { paused: false, pauseNote: "" }),
    }),
    trigger: ({ payload }) => ({ runId: BigInt(payload?.length ?? 0) }),
    backfill: ({ fromAt, toAt }) => ({ runIds: [fromAt?.seconds ?? 0n, toAt?.seconds ?? 0n] }),
    preview: ({ n, after }) => ({
      ticks: Array.from({ length: n }, (_, tick) =>
        timestampFromDate(new Date(Number(after?.seconds ?? 0n) * 1000 + tick)),
      ),
    }),
  };
}
