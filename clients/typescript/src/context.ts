/**
 * What a handler is given: its input, its owned state, durable steps, deferreds and progress.
 *
 * One Context serves one attempt. Everything it writes carries the attempt's RunRef, so that a later attempt
 * or a newer term makes it fail with `Fenced` instead of overwriting anything. Once `signal` is aborted its
 * methods throw the signal's reason, so that a handler in a loop of them ends.
 */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Deferred } from "./deferreds.js";
import type { ExecuteRequest } from "./gen/baton/v1/callback_pb.js";
import type { ExecutionMetadata, RunKind } from "./gen/baton/v1/runs_pb.js";
import { FailedPrecondition } from "./errors.js";
import { JobPriority } from "./gen/baton/v1/job_types_pb.js";
import { type Priority, priorityOf } from "./job_spec.js";
import { Fail } from "./outcomes.js";
import type { ClusterContext } from "./scope.js";
import type { Progress, Runs } from "./runs.js";
import type { Sidecar } from "./sidecar.js";
import type { RunRef } from "./state.js";
import { fromJson, fromStored, toBytes, toStored } from "./values.js";
import { pause } from "./waiting.js";

/** The owned state of a singleton or schedule, and the declared version it was made for. */
export class OwnedState<S = unknown> {
  constructor(
    readonly raw: Uint8Array,
    readonly version: number,
  ) {}

  /** The state from JSON; undefined if nothing was ever stored. */
  json(): S | undefined {
    return fromJson(this.raw) as S | undefined;
  }
}

/** Where what a run reports while it runs is stored: by unary calls, or over the stream. */
export type RunRecords = Pick<Runs, "checkpoint" | "heartbeat">;

/** What an attempt has besides its request. */
export interface RunParts {
  readonly cluster: ClusterContext;
  readonly sidecar: Sidecar;
  readonly records: RunRecords;
  readonly draining: AbortSignal;
  readonly signal: AbortSignal;
}

/** One attempt of one run, with a payload `P` and an owned state `S`. */
export class Context<P = unknown, S = unknown> {
  readonly cluster: ClusterContext;
  readonly name: string;
  readonly kind: RunKind;
  readonly runId: bigint;
  /** 1 for the first delivery; higher with each further one. */
  readonly attempt: number;
  /** The fencing token of the term. */
  readonly epoch: bigint;
  /** The same for every attempt of this run, and for no other run. */
  readonly idempotencyKey: string;
  readonly payload: Uint8Array;
  readonly contentType: string;
  readonly scheduledAt: Date;
  /** When this attempt is cancelled; undefined: never. */
  readonly deadline: Date | undefined;
  /** What is remembered of earlier runs. */
  readonly metadata: ExecutionMetadata | undefined;
  /** Aborted when this attempt must stop: its run was cancelled, its time or its term is over. */
  readonly signal: AbortSignal;
  /** Aborted when the leader starts to hand over: start nothing new. */
  readonly draining: AbortSignal;

  #state: OwnedState<S>;
  readonly #sidecar: Sidecar;
  readonly #records: RunRecords;
  readonly #stored: Map<string, Uint8Array>;
  readonly #begun = new Set<string>();

  constructor(request: ExecuteRequest, parts: RunParts) {
    this.cluster = parts.cluster;
    this.name = request.name;
    this.kind = request.kind;
    this.runId = request.runId;
    this.attempt = request.attempt;
    this.epoch = this.cluster.epoch;
    this.idempotencyKey = request.idempotencyKey;
    this.payload = request.payload;
    this.contentType = request.contentType;
    this.scheduledAt = request.scheduledAt ? timestampDate(request.scheduledAt) : new Date();
    this.deadline = request.deadline && timestampDate(request.deadline);
    this.metadata = request.metadata;
    this.signal = parts.signal;
    this.draining = parts.draining;
    this.#state = new OwnedState(request.state, request.stateVersion);
    this.#sidecar = parts.sidecar;
    this.#records = parts.records;
    this.#stored = new Map(request.checkpoints.map(({ step, value }) => [step, value]));
  }

  /** The payload from JSON; undefined if it is empty. */
  json(): P | undefined {
    return fromJson(this.payload) as P | undefined;
  }

  /** The owned state as it was committed last, or as this attempt has put it since. */
  get state(): OwnedState<S> {
    return this.#state;
  }

  /** Names this attempt, for calls that must fail once it is over. */
  get runRef(): RunRef {
    return { runId: this.runId, attempt: this.attempt, epoch: this.epoch };
  }

  /**
   * Runs `task` once per run, not once per attempt, and remembers what it returned: JSON or bytes.
   *
   * If the process dies between the task's end and the answer of the sidecar, the task runs again.
   */
  async step<T>(name: string, task: () => T | Promise<T>): Promise<T> {
    if (this.#begun.has(name)) {
      throw new Fail(`step '${name}' was used twice in one attempt`, { code: "StepNameReused" });
    }
    this.#begun.add(name);
    this.signal.throwIfAborted();
    let stored = this.#stored.get(name);
    if (!stored) {
      stored = toStored(await task());
      // Not ended by the signal: what was done is remembered if the attempt still counts.
      await this.#records.checkpoint(this.runRef, name, stored);
      this.#stored.set(name, stored);
    }
    return fromStored(stored) as T;
  }

  /** The deferred of that name of this run: the same one, and token, in every attempt. */
  async createDeferred<V = unknown>(
    name: string,
    options: { readonly ttlMs?: number } = {},
  ): Promise<Deferred<V>> {
    const { runRef: run, signal } = this;
    return this.#sidecar.deferreds.create<V>(name, { ...options, run, signal });
  }

  /** Waits for the deferred of that name: its value, or `DeferredFailed`. */
  async deferred<V = unknown>(name: string, options?: { readonly ttlMs?: number }): Promise<V> {
    const deferred = await this.createDeferred<V>(name, options);
    return deferred.value({ signal: this.signal });
  }

  /** Reports that this run is alive, how far it is, and what it is doing. */
  async heartbeat(progress: Progress = {}): Promise<void> {
    await this.#records.heartbeat(this.runRef, progress, { signal: this.signal });
  }

  /** Replaces the owned state now, not only when the run ends. */
  async putState(value: S): Promise<void> {
    const raw = toBytes(value);
    const options = { run: this.runRef, signal: this.signal };
    await this.#sidecar.state.put(this.stateKey(), raw, options);
    this.#state = new OwnedState(raw, this.#state.version);
  }

  /** The key of the owned state. */
  protected stateKey(): string {
    const { entityType, entityId } = this.cluster;
    return `${entityType}-state:${entityId}`;
  }

  /** Waits; throws the signal's reason as soon as this attempt must stop. */
  async sleep(ms: number): Promise<void> {
    await pause(ms, this.signal);
    this.signal.throwIfAborted();
  }
}

/** One attempt of one job. Its owned state is that of its key; `draining` is aborted when the app stops. */
export class JobRun<P = unknown, S = unknown> extends Context<P, S> {
  readonly queue: string;
  /** Jobs with the same name and key run one at a time and share state; empty: none. */
  readonly key: string;
  readonly priority: Priority;
  readonly labels: Readonly<Record<string, string>>;
  /** Empty: none. */
  readonly batch: string;
  readonly submittedAt: Date | undefined;
  /** How often the job was taken back from a pod that died or lost its lease. */
  readonly rescues: number;

  constructor(request: ExecuteRequest, parts: RunParts) {
    super(request, parts);
    const { job } = request;
    this.queue = job?.queue || "default";
    this.key = job?.key ?? "";
    this.priority = priorityOf(job?.priority ?? JobPriority.NORMAL);
    this.labels = { ...job?.labels };
    this.batch = job?.batch ?? "";
    this.submittedAt = job?.submittedAt && timestampDate(job.submittedAt);
    this.rescues = job?.rescues ?? 0;
  }

  protected override stateKey(): string {
    if (this.key) return `job-state:${this.name}/${this.key}`;
    throw new FailedPrecondition(`job '${this.name}' has no key, and so no state`);
  }
}
