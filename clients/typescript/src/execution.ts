/**
 * What is done with the sidecar's messages, however they arrive: proto/baton/v1/callback.proto in TypeScript.
 *
 * `Callbacks` (unary calls) and `Session` (the stream) decode them and send what comes out of here. A message
 * that cannot be answered with its response is answered with the status of a `Refusal`.
 */
import { setMaxListeners } from "node:events";
import { status } from "@grpc/grpc-js";
import { Context, JobRun, type RunRecords } from "./context.js";
import { BatonError, Cancelled } from "./errors.js";
import {
  type ExecuteRequest,
  type ExecuteResponse,
  LossReason,
  type OnBecomeLeaderRequest,
  type OnLoseLeadershipRequest,
} from "./gen/baton/v1/callback_pb.js";
import { RunKind } from "./gen/baton/v1/runs_pb.js";
import type { Handler, Handlers } from "./handlers.js";
import type { Leading, Reason } from "./leading.js";
import type { Log } from "./log.js";
import { failure, isMeant, kindOf, success } from "./outcomes.js";
import { type ClusterContext, clusterContextOf, inScope } from "./scope.js";
import { Refusal } from "./server.js";
import type { Sidecar } from "./sidecar.js";
import { type Term, trustEnd } from "./terms.js";
import { WaitGroup } from "./waiting.js";

/** What an executor works with. */
export interface ExecutorParts {
  readonly sidecar: Sidecar;
  readonly leading: Leading;
  readonly handlers: Handlers;
  readonly log: Log;
  /** Only the type of an unexpected error is sent. */
  readonly hideErrors: boolean;
}

/** Hands the sidecar's messages to hooks and handlers. */
export class Executor {
  readonly #attempts = new Set<AbortController>();
  readonly #open = new WaitGroup();
  readonly #draining = new AbortController();

  constructor(private readonly parts: ExecutorParts) {
    setMaxListeners(0, this.#draining.signal); // one for each job that listens
  }

  /** Opens a term; `asked` is aborted when the sidecar no longer waits for it. */
  async become(
    request: OnBecomeLeaderRequest,
    { readAt, traceparent, asked }: { readAt: number; traceparent: string; asked: AbortSignal },
  ): Promise<void> {
    const cluster = clusterContextOf(request.context);
    const { leading, sidecar, log } = this.parts;
    if (leading.stopping) throw new Refusal(status.UNAVAILABLE, "the app is stopping");
    try {
      await inScope({ cluster, sidecar, traceparent }, () =>
        leading.become(cluster, trustEnd(request, readAt), asked),
      );
    } catch (error) {
      if (error instanceof Cancelled) throw new Refusal(status.UNAVAILABLE, error.message);
      log.error(`the hook for becoming leader of ${cluster.group} failed`, error);
      throw new Refusal(status.INTERNAL, `hook failed: ${kindOf(error)}`);
    }
  }

  /** Ends a term; returns when all of it has stopped. */
  async lose(request: OnLoseLeadershipRequest, traceparent: string): Promise<void> {
    const cluster = clusterContextOf(request.context);
    const { leading, sidecar } = this.parts;
    const reason = reasonOf(request.reason);
    const agreed = await inScope({ cluster, sidecar, traceparent }, () =>
      leading.lose(cluster, reason, cluster.epoch),
    );
    if (!agreed) throw new Refusal(status.INTERNAL, "hook failed");
  }

  /** Executes one attempt until it ends; abort `attempt` to stop it. */
  async execute(
    request: ExecuteRequest,
    attempt: AbortController,
    { traceparent, records }: { traceparent: string; records: RunRecords },
  ): Promise<ExecuteResponse> {
    const cluster = clusterOf(request);
    const term = request.kind === RunKind.JOB ? undefined : this.#termOf(cluster);
    const handler = this.parts.handlers.find(request);
    if (!handler) throw new Refusal(status.NOT_FOUND, `no handler for '${request.name}'`);
    setMaxListeners(0, attempt.signal); // one for each call that the handler makes
    const { sidecar } = this.parts;
    const draining = term?.draining ?? this.#draining.signal;
    const run = { cluster, sidecar, records, draining, signal: attempt.signal };
    const context = term ? new Context(request, run) : new JobRun(request, run);
    const answer = await inScope({ cluster, sidecar, traceparent }, () =>
      this.#run(term, attempt, () => this.#answer(handler, context)),
    );
    // However it ended: a handler that was told to stop may have left its work half done.
    if (attempt.signal.aborted) throw endedBy(attempt.signal.reason);
    return answer;
  }

  /** Jobs learn that the app is stopping; the runs of a term learn it from their term. */
  drain(): void {
    this.#draining.abort(new Cancelled("the app is stopping"));
  }

  /** Stops every attempt. */
  cancelAll(reason: Error): void {
    for (const attempt of this.#attempts) attempt.abort(reason);
  }

  /** Whether, within the time, no attempt is running. */
  async idle(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#open.idle(timeoutMs, signal);
  }

  #termOf({ group, epoch }: ClusterContext): Term {
    const term = this.parts.leading.term(group, epoch);
    if (!term) throw new Refusal(status.UNAVAILABLE, `not in term ${epoch}`);
    return term;
  }

  async #run<T>(
    term: Term | undefined,
    attempt: AbortController,
    task: () => Promise<T>,
  ): Promise<T> {
    const done = this.#open.add();
    this.#attempts.add(attempt);
    try {
      return await (term ? this.parts.leading.run(term, attempt, task) : task());
    } finally {
      this.#attempts.delete(attempt);
      done();
    }
  }

  async #answer(handler: Handler, context: Context): Promise<ExecuteResponse> {
    try {
      return success(await handler(context), this.parts.handlers.defaultsOf);
    } catch (error) {
      if (!isMeant(error) && !context.signal.aborted) {
        this.parts.log.error(`run ${context.runId} of ${context.name} failed`, error);
      }
      return failure(error, this.parts.hideErrors);
    }
  }
}

/** A job belongs to no group. */
function clusterOf({ kind, context }: ExecuteRequest): ClusterContext {
  const cluster = clusterContextOf(context);
  return kind === RunKind.JOB ? Object.freeze({ ...cluster, group: "" }) : cluster;
}

function endedBy(reason: unknown): Refusal {
  const code = reason instanceof BatonError ? reason.code : undefined;
  return new Refusal(code ?? status.UNAVAILABLE, "the attempt was ended");
}

/** The name of a reason; one of a later version of the contract has none here. */
function reasonOf(reason: LossReason): Reason {
  return ((LossReason[reason] as string | undefined) ?? "UNSPECIFIED") as Reason;
}
