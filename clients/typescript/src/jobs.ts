/** Jobs: background work that any pod may execute. Submitting, reading and changing them works on any pod. */
import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Connection, pages } from "./connection.js";
import { durations, given } from "./declared.js";
import { enqueue, type EnqueueTarget, type Queryable } from "./enqueue.js";
import { DeadlineExceeded, isAway, NotConnected } from "./errors.js";
import {
  type Job,
  type JobFilterSchema,
  Jobs as Service,
  type JobsGetBatchResponse,
  type Queue,
} from "./gen/baton/v1/jobs_pb.js";
import { RunState } from "./gen/baton/v1/runs_pb.js";
import { type DefaultsOf, type JobOptions, type JobRequest, specOf } from "./job_spec.js";
import { present } from "./present.js";
import { backoff, pause } from "./waiting.js";

const GET_WAIT_MS = 30_000;
const rpc = Service.method;

/** Filters are joined by "and". */
export type JobFilter = Omit<
  MessageInitShape<typeof JobFilterSchema>,
  "$typeName" | "$unknown" | "since" | "until"
> & {
  /** Submitted at this time or later. */
  readonly since?: Date;
  /** Submitted before this time. */
  readonly until?: Date;
};

/** Which jobs: some by id, or all that match. */
export type JobSelection = readonly bigint[] | JobFilter;

/** What became of a submitted job. */
export interface Submitted {
  readonly id: bigint;
  /** There was an earlier one (`unique`): the id is its own. */
  readonly duplicate: boolean;
}

/** What belongs to a whole call of `submitMany`. */
export interface SubmitOptions extends CallOptions {
  /** Chosen at random unless given: the same id within a day submits nothing new. */
  readonly requestId?: string;
  /** Closes this batch: no more jobs of it will come. */
  readonly closeBatch?: string;
  /** Submitted when every job of the closed batch has ended. */
  readonly onComplete?: JobRequest;
}

/** What the app knows that its jobs need. */
export interface JobsHome {
  readonly defaultsOf: DefaultsOf;
  /** The cluster, once it is known. */
  readonly cluster: () => string | undefined;
}

/** The jobs, queues, batches and dead letters of the cluster. */
export class Jobs {
  constructor(
    private readonly connection: Connection,
    private readonly home: JobsHome,
  ) {}

  /** Submits one job: durable once this returns. */
  async submit(
    name: string,
    payload?: unknown,
    { signal, requestId, ...options }: JobOptions & CallOptions & { requestId?: string } = {},
  ): Promise<Submitted> {
    const call = { signal, ...(requestId !== undefined && { requestId }) };
    const [submitted] = await this.submitMany([{ ...options, name, payload }], call);
    return present(submitted);
  }

  /** Submits up to 1,000 jobs, all or none; what became of each, in order. */
  async submitMany(jobs: readonly JobRequest[], options: SubmitOptions = {}): Promise<Submitted[]> {
    const { requestId = randomUUID(), closeBatch, onComplete, signal } = options;
    const request = {
      jobs: jobs.map((job) => specOf(job, this.home.defaultsOf)),
      requestId,
      ...(closeBatch && { batch: closeBatch }),
      ...(onComplete && { onComplete: specOf(onComplete, this.home.defaultsOf) }),
    };
    const response = await this.connection.call(rpc.submit, request, { signal });
    return response.jobs.map(({ jobId: id, duplicate }) => ({ id, duplicate }));
  }

  /**
   * Submits a job in the transaction that is open on `client`, a connection of node-postgres; its id.
   *
   * The cluster is that of the sidecar this app is attached to, unless it is given.
   */
  async enqueue(
    client: Queryable,
    name: string,
    payload?: unknown,
    { cluster, schema, ...options }: JobOptions & Partial<EnqueueTarget> = {},
  ): Promise<bigint> {
    const found = cluster ?? this.home.cluster();
    if (!found) throw new NotConnected("the cluster is not known yet: attach first, or give it");
    const job = { ...options, name, payload };
    return enqueue(client, { cluster: found, schema }, job, this.home.defaultsOf);
  }

  /** One job, with payload, result and history. */
  async get(jobId: bigint, options?: CallOptions): Promise<Job> {
    return present((await this.connection.call(rpc.get, { jobId }, options)).job);
  }

  /** The job once it has ended; `DeadlineExceeded` if that takes longer than `timeoutMs`. */
  async wait(jobId: bigint, { timeoutMs = Infinity, signal }: WaitOptions = {}): Promise<Job> {
    const deadline = performance.now() + timeoutMs;
    const waits = backoff();
    for (;;) {
      const leftMs = Math.max(deadline - performance.now(), 0);
      const waitMs = Math.min(leftMs, GET_WAIT_MS);
      try {
        const request = { jobId, ...durations({ wait: waitMs }) };
        const call = { signal, timeoutMs: waitMs + GET_WAIT_MS / 2, repeatable: false };
        const job = present((await this.connection.call(rpc.get, request, call)).job);
        if (job.state === RunState.ENDED) return job;
      } catch (error) {
        if (!(isAway(error) || error instanceof DeadlineExceeded)) throw error;
        await pause(Math.min(waits(), leftMs), signal);
      }
      signal?.throwIfAborted();
      if (performance.now() < deadline) continue;
      throw new DeadlineExceeded(`job ${jobId} has not ended within ${timeoutMs} ms`);
    }
  }

  /** Jobs, newest first, without payload, result and history. */
  async *list(filter: JobFilter = {}, options?: CallOptions): AsyncGenerator<Job> {
    const ask = (pageToken: string) =>
      this.connection.call(rpc.list, { filter: filterOf(filter), pageToken }, options);
    for await (const page of pages(ask)) yield* page.jobs;
  }

  /** Cancels jobs: how many ended at once, and how many that run were asked to stop. */
  async cancel(
    which: JobSelection | bigint,
    { note = "", signal }: CallOptions & { readonly note?: string } = {},
  ): Promise<{ cancelled: number; requested: number }> {
    const request = { ...selected(typeof which === "bigint" ? [which] : which), note };
    const { cancelled, requested } = await this.connection.call(rpc.cancel, request, { signal });
    return { cancelled, requested };
  }

  /** Makes a job that waits for its next attempt due now. */
  async retry(jobId: bigint, options?: CallOptions): Promise<Job> {
    return present((await this.connection.call(rpc.retry, { jobId }, options)).job);
  }

  /** Changes when a job that is not running is due. */
  async reschedule(jobId: bigint, dueAt: Date, options?: CallOptions): Promise<Job> {
    const request = { jobId, dueAt: timestampFromDate(dueAt) };
    return present((await this.connection.call(rpc.reschedule, request, options)).job);
  }

  /** The job now and after each change, until it has ended; a broken stream is opened again. */
  async *watch(jobId: bigint, { signal }: CallOptions = {}): AsyncGenerator<Job> {
    let waits = backoff();
    for (;;) {
      try {
        for await (const { job } of this.connection.stream(rpc.watch, { jobId }, { signal })) {
          waits = backoff();
          const seen = present(job);
          yield seen;
          if (seen.state === RunState.ENDED) return;
        }
      } catch (error) {
        if (!isAway(error)) throw error;
      }
      await pause(waits(), signal);
    }
  }

  /** Depth, age and limits of each queue, or of one. */
  async stats(queue = "", options?: CallOptions): Promise<Queue[]> {
    return (await this.connection.call(rpc.stats, { queue }, options)).queues;
  }

  /** Stops starting jobs of a queue, on all pods; the note is for whoever finds it so. */
  async pauseQueue(queue: string, note = "", options?: CallOptions): Promise<Queue> {
    return present((await this.connection.call(rpc.pauseQueue, { queue, note }, options)).queue);
  }

  /** Starts jobs of a paused queue again. */
  async resumeQueue(queue: string, options?: CallOptions): Promise<Queue> {
    return present((await this.connection.call(rpc.resumeQueue, { queue }, options)).queue);
  }

  /** Counts the jobs of a batch. */
  async batch(batch: string, options?: CallOptions): Promise<JobsGetBatchResponse> {
    return this.connection.call(rpc.getBatch, { batch }, options);
  }

  /** Dead letters, newest first, without payloads. */
  async *dead(filter: JobFilter = {}, options?: CallOptions): AsyncGenerator<Job> {
    const ask = (pageToken: string) =>
      this.connection.call(rpc.listDead, { filter: filterOf(filter), pageToken }, options);
    for await (const page of pages(ask)) yield* page.jobs;
  }

  /** Queues dead letters again, with all their retries: how many, or with `dryRun` how many it would be. */
  async replay(which: JobSelection, { dryRun = false, signal }: DeadOptions = {}): Promise<number> {
    const request = { ...selected(which), dryRun };
    const options = { signal, repeatable: false };
    return (await this.connection.call(rpc.replay, request, options)).replayed;
  }

  /** Removes dead letters: how many, or with `dryRun` how many it would be. */
  async discard(
    which: JobSelection,
    { dryRun = false, signal }: DeadOptions = {},
  ): Promise<number> {
    const request = { ...selected(which), dryRun };
    const options = { signal, repeatable: false };
    return (await this.connection.call(rpc.discard, request, options)).discarded;
  }
}

interface WaitOptions extends CallOptions {
  readonly timeoutMs?: number;
}

interface DeadOptions extends CallOptions {
  readonly dryRun?: boolean;
}

function selected(which: JobSelection) {
  return Array.isArray(which)
    ? { jobIds: which as bigint[] }
    : { filter: filterOf(which as JobFilter) };
}

function filterOf({ since, until, ...rest }: JobFilter) {
  return {
    ...(given(rest) as typeof rest),
    ...(since && { since: timestampFromDate(since) }),
    ...(until && { until: timestampFromDate(until) }),
  };
}
