/**
 * The jobs of the fake: in memory, at once, on a clock that only the test moves.
 *
 * A job that is due is delivered to the attached processes that have its handler and room for it. Jobs of one name
 * and key run one at a time, in order. `advance` moves the clock: due times, retries and snoozes follow it.
 */
import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import type { ExecuteResponse } from "../../src/gen/baton/v1/callback_pb.js";
import { JobConflict, JobPriority, type JobSpec } from "../../src/gen/baton/v1/job_types_pb.js";
import { type Job, type Jobs, JobSchema, QueueSchema } from "../../src/gen/baton/v1/jobs_pb.js";
import {
  type Checkpoint,
  Outcome,
  RunKind,
  RunState,
  SkipReason,
} from "../../src/gen/baton/v1/runs_pb.js";
import { type Methods, Refused, type WatchCall, Watchers } from "./serving.js";
import type { FakeState } from "./state.js";
import type { FakeProcess, FakeStream } from "./stream.js";

const PAGE = 2;
const RETRY_MS = 1000;
const ATTEMPTS = 3;

/** A job with what only the fake keeps. */
interface Kept {
  readonly job: Job;
  readonly spec: JobSpec;
  readonly report: { checkpoints: Checkpoint[]; progress: string };
  dueMs: number;
  process?: FakeProcess;
}

export class FakeJobs {
  /** Milliseconds since the Unix epoch. */
  nowMs = 1_800_000_000_000;
  /** The worker's fencing token. */
  epoch = 5n;
  readonly all: Kept[] = [];
  readonly requestIds: string[] = [];
  readonly #paused = new Map<string, string>();
  readonly #watchers = new Watchers();
  readonly #submitted = new Map<string, { jobId: bigint; duplicate: boolean }[]>();

  constructor(
    private readonly stream: () => FakeStream,
    private readonly state: FakeState,
  ) {}

  /** Moves the clock, and delivers what is due by then. */
  advance(ms: number): void {
    this.nowMs += ms;
    this.pump();
  }

  find(jobId: bigint): Kept {
    const found = this.all.find(({ job }) => job.jobId === jobId);
    if (!found) throw new Refused(status.NOT_FOUND);
    return found;
  }

  /** Whether a RunRef names the live attempt of a job. */
  isLive({ runId, attempt, epoch }: { runId: bigint; attempt: number; epoch: bigint }): boolean {
    const kept = this.all.find(({ job }) => job.jobId === runId);
    const live = kept?.job.state === RunState.RUNNING && kept.job.attempt === attempt;
    return live && epoch === this.epoch;
  }

  readonly methods: Methods<typeof Jobs> = {
    submit: ({ jobs, requestId }) => {
      this.requestIds.push(requestId);
      const done = this.#submitted.get(requestId) ?? jobs.map((spec) => this.#submit(spec));
      this.#submitted.set(requestId, done);
      setImmediate(() => {
        this.pump();
      });
      return { jobs: done };
    },
    get: async ({ jobId, wait }) => {
      const end = performance.now() + Math.min(wait ? durationMs(wait) : 0, 100);
      const { job } = this.find(jobId);
      while (job.state !== RunState.ENDED && performance.now() < end) {
        await new Promise((go) => setTimeout(go, 5));
      }
      return { job };
    },
    list: ({ filter, pageToken }) => this.#page(this.#matching(filter), pageToken),
    listDead: ({ filter, pageToken }) => this.#page(this.#dead(filter), pageToken),
    cancel: ({ jobIds, filter }) =>
      this.#cancel(filter ? this.#matching(filter) : this.#ids(jobIds)),
    retry: ({ jobId }) => this.#due(jobId, this.nowMs),
    reschedule: ({ jobId, dueAt }) => this.#due(jobId, dueAt ? timestampMs(dueAt) : this.nowMs),
    stats: () => ({ queues: [this.#queue("default")] }),
    pauseQueue: ({ queue, note }) => {
      this.#paused.set(queue, note);
      return { queue: this.#queue(queue) };
    },
    resumeQueue: ({ queue }) => {
      this.#paused.delete(queue);
      this.pump();
      return { queue: this.#queue(queue) };
    },
    getBatch: ({ batch }) => {
      const total = this.all.filter(({ job }) => job.batch === batch).length;
      if (total === 0) throw new Refused(status.NOT_FOUND);
      return { total: BigInt(total) };
    },
    replay: ({ jobIds, filter, dryRun }) => {
      const dead = filter ? this.#dead(filter) : this.#ids(jobIds);
      if (!dryRun) for (const kept of dead) this.#again(kept, this.nowMs);
      return { replayed: dead.length };
    },
    discard: ({ jobIds, filter, dryRun }) => {
      const dead = filter ? this.#dead(filter) : this.#ids(jobIds);
      if (!dryRun) for (const kept of dead) this.all.splice(this.all.indexOf(kept), 1);
      return { discarded: dead.length };
    },
  };

  watch(call: WatchCall): void {
    const { jobId } = call.request as unknown as { jobId: bigint };
    this.#watchers.add(call, () => {
      const { job } = this.find(jobId);
      call.write({ job });
      if (job.state === RunState.ENDED) call.end();
    });
  }

  /** Delivers what is due. */
  pump(): void {
    for (const kept of this.all) {
      const { job } = kept;
      if (job.state === RunState.ENDED || job.state === RunState.RUNNING) continue;
      if (kept.dueMs > this.nowMs || this.#paused.has(job.queue) || this.#isBlocked(kept)) continue;
      const process = this.#worker(job.name);
      if (process) void this.#deliver(kept, process);
    }
  }

  #worker(name: string): FakeProcess | undefined {
    const running = (process: FakeProcess) =>
      this.all.filter((kept) => kept.process === process && kept.job.state === RunState.RUNNING)
        .length;
    const able = this.stream().open.filter((process) => process.hello?.jobs.includes(name));
    const room = able.filter((process) => running(process) < process.capacity);
    return room.sort((a, b) => running(a) - running(b))[0];
  }

  #isBlocked(kept: Kept): boolean {
    const { name, key, jobId } = kept.job;
    const same = (other: Job) => other.name === name && other.key === key;
    const before = ({ job }: Kept) => job.jobId < jobId && job.state !== RunState.ENDED;
    return key !== "" && this.all.some((other) => same(other.job) && before(other));
  }

  async #deliver(kept: Kept, process: FakeProcess): Promise<void> {
    const { job } = kept;
    Object.assign(job, { state: RunState.RUNNING, attempt: job.attempt + 1 });
    kept.process = process;
    this.#watchers.tell();
    try {
      this.#conclude(kept, await process.execute(this.#request(kept)));
    } catch (error) {
      if (job.state !== RunState.RUNNING) return;
      job.rescues += process.ended ? 1 : 0;
      this.#fail(kept, String(error), { retryable: true, counts: !process.ended, afterMs: 0 });
    }
    this.#watchers.tell();
    this.pump();
  }

  #request({ job, spec, report }: Kept) {
    const stateKey = `job-state:${job.name}/${job.key}`;
    const { queue, key, priority, labels, batch, rescues } = job;
    return {
      context: { epoch: this.epoch, entityType: "job", entityId: key },
      ...{ runId: job.jobId, kind: RunKind.JOB, name: job.name, attempt: job.attempt },
      ...{ payload: job.payload, contentType: job.contentType },
      state: this.state.entries.get(stateKey)?.value ?? new Uint8Array(),
      checkpoints: report.checkpoints,
      idempotencyKey: job.idempotencyKey,
      scheduledAt: timestampFromMs(this.nowMs),
      job: { queue, key, priority, labels, batch, rescues },
      ...(spec.timeout && { deadline: timestampFromMs(Date.now() + durationMs(spec.timeout)) }),
    };
  }

  #conclude(kept: Kept, { outcome }: ExecuteResponse): void {
    const { job } = kept;
    const state = outcome.case === "skipped" ? undefined : outcome.value?.state;
    if (state && job.key) this.state.write(`job-state:${job.name}/${job.key}`, state);
    if (outcome.case === "failed") {
      const { message, retryable, retryAfter } = outcome.value;
      const afterMs = retryAfter ? durationMs(retryAfter) : RETRY_MS;
      this.#fail(kept, message, { retryable, counts: true, afterMs });
    } else if (outcome.case === "snoozed") {
      const { until } = outcome.value;
      const at = until.case === "at" ? timestampMs(until.value) : this.nowMs;
      this.#again(kept, until.case === "after" ? at + durationMs(until.value) : at);
    } else if (outcome.case === "skipped") {
      const reason = SkipReason.APP_DECLINED;
      Object.assign(job, { state: RunState.ENDED, outcome: Outcome.SKIPPED, reason });
    } else {
      const result = outcome.value?.result ?? new Uint8Array();
      Object.assign(job, { state: RunState.ENDED, outcome: Outcome.SUCCEEDED, result });
      for (const spec of outcome.value?.jobs ?? []) this.#submit(spec);
    }
  }

  #fail(
    kept: Kept,
    error: string,
    { retryable, counts, afterMs }: { retryable: boolean; counts: boolean; afterMs: number },
  ): void {
    const { job, spec } = kept;
    job.error = error;
    job.failures += counts ? 1 : 0;
    const left = (spec.retry?.attempts ?? ATTEMPTS) - job.failures;
    if (retryable && left > 0) this.#again(kept, this.nowMs + afterMs);
    else Object.assign(job, { state: RunState.ENDED, outcome: Outcome.FAILED });
  }

  #again(kept: Kept, dueMs: number): void {
    kept.dueMs = dueMs;
    if (kept.job.state === RunState.ENDED) kept.job.failures = 0;
    Object.assign(kept.job, { state: RunState.WAITING, outcome: Outcome.UNSPECIFIED });
    setImmediate(() => {
      this.pump();
    });
  }

  #submit(spec: JobSpec): { jobId: bigint; duplicate: boolean } {
    const earlier = spec.unique && this.#earlier(spec);
    if (earlier) {
      const { REJECT } = JobConflict;
      if (spec.unique?.onConflict === REJECT) throw new Refused(status.ALREADY_EXISTS);
      return { jobId: earlier.job.jobId, duplicate: true };
    }
    const jobId = BigInt(this.all.length + 1_000_000);
    const { name, key, labels, batch, payload } = spec;
    const job = create(JobSchema, {
      ...{ jobId, name, key, labels, batch, payload },
      queue: spec.queue || "default",
      priority: spec.priority || JobPriority.NORMAL,
      contentType: spec.contentType || "application/json",
      state: RunState.QUEUED,
      idempotencyKey: `job-${jobId}`,
    });
    const report = { checkpoints: [], progress: "" };
    this.all.push({ job, spec, report, dueMs: this.#dueMs(spec) });
    return { jobId, duplicate: false };
  }

  #earlier({ name, unique }: JobSpec): Kept | undefined {
    return this.all.find(({ job, spec }) => {
      const same = job.name === name && spec.unique?.key === unique?.key;
      return same && job.state !== RunState.ENDED;
    });
  }

  #dueMs({ due }: JobSpec): number {
    if (due.case === "dueAt") return timestampMs(due.value);
    return this.nowMs + (due.case === "delay" ? durationMs(due.value) : 0);
  }

  #due(jobId: bigint, dueMs: number) {
    const kept = this.find(jobId);
    const { state } = kept.job;
    if (state === RunState.ENDED || state === RunState.RUNNING) {
      throw new Refused(status.FAILED_PRECONDITION);
    }
    kept.dueMs = dueMs;
    this.pump();
    return { job: kept.job };
  }

  #cancel(chosen: Kept[]) {
    let [cancelled, requested] = [0, 0];
    for (const { job, process } of chosen) {
      if (job.state === RunState.ENDED) continue;
      if (job.state === RunState.RUNNING) {
        requested += 1;
        process?.cancel(job.jobId, job.attempt);
      } else cancelled += 1;
      const reason = SkipReason.OPERATOR;
      Object.assign(job, { state: RunState.ENDED, outcome: Outcome.SKIPPED, reason });
    }
    return { cancelled, requested };
  }

  #ids(jobIds: readonly bigint[]): Kept[] {
    return jobIds.map((jobId) => this.find(jobId));
  }

  #matching(filter: { name: string; key: string; queue: string } | undefined): Kept[] {
    const fits = (wanted: string | undefined, found: string) => !wanted || wanted === found;
    return this.all.filter(
      ({ job }) =>
        fits(filter?.name, job.name) &&
        fits(filter?.key, job.key) &&
        fits(filter?.queue, job.queue),
    );
  }

  #dead(filter: Parameters<FakeJobs["find"]>[0] | undefined | object): Kept[] {
    const chosen = this.#matching(filter as never);
    return chosen.filter(({ job }) => job.outcome === Outcome.FAILED);
  }

  #page(chosen: Kept[], pageToken: string) {
    const from = Number(pageToken || "0");
    const jobs = chosen.map(({ job }) => job).reverse();
    const nextPageToken = from + PAGE < jobs.length ? String(from + PAGE) : "";
    return { jobs: jobs.slice(from, from + PAGE), nextPageToken };
  }

  #queue(name: string) {
    const of = this.all.filter(({ job }) => job.queue === name);
    const ready = of.filter(({ job }) => job.state === RunState.QUEUED).length;
    const paused = this.#paused.has(name);
    const pauseNote = this.#paused.get(name) ?? "";
    return create(QueueSchema, { name, ready: BigInt(ready), paused, pauseNote });
  }
}
