/**
 * The service that the sidecar calls: proto/baton/v1/callback.proto in TypeScript.
 *
 * Nothing of the user's errors but their type leaves the process; the rest goes to the log.
 */
import { setMaxListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import { status, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { Context } from "./context.js";
import {
  type ClusterContext as ClusterContextMessage,
  type ExecuteRequest,
  type ExecuteResponse,
  LossReason,
  type OnBecomeLeaderRequest,
  OnBecomeLeaderResponseSchema,
  type OnLoseLeadershipRequest,
  OnLoseLeadershipResponseSchema,
} from "./gen/baton/v1/callback_pb.js";
import { RunKind } from "./gen/baton/v1/runs_pb.js";
import type { Leading, Reason } from "./leading.js";
import type { Log } from "./log.js";
import { failure, isMeant, kindOf, success } from "./outcomes.js";
import { type ClusterContext, clusterContextOf, inScope } from "./scope.js";
import { type Call, Refusal, unary } from "./server.js";
import type { Sidecar } from "./sidecar.js";
import { type Term, trustEnd } from "./terms.js";
import type { TokenFile } from "./tokens.js";
import { onAbort } from "./waiting.js";

/** Executes one attempt; what it returns or throws is the outcome. */
export type Handler<P = unknown, S = unknown> = (context: Context<P, S>) => unknown;

/** What the app can execute, by name. */
export class Handlers {
  readonly schedules = new Map<string, Handler>();
  readonly singletons = new Map<string, Handler>();

  /** The handler for a run; undefined: this app does not know it. */
  find({ kind, name }: ExecuteRequest): Handler | undefined {
    return (kind === RunKind.SINGLETON ? this.singletons : this.schedules).get(name);
  }
}

/** Hands the sidecar's calls to hooks and handlers. */
export class Callbacks {
  constructor(
    private readonly sidecar: Sidecar,
    private readonly leading: Leading,
    private readonly handlers: Handlers,
    private readonly token: TokenFile | undefined,
    private readonly log: Log,
  ) {}

  readonly implementation: UntypedServiceImplementation = {
    onBecomeLeader: unary((request: OnBecomeLeaderRequest, call) => {
      const readAt = this.leading.terms.clock();
      return this.#entered(request, call, async (context) => {
        if (this.leading.stopping) throw new Refusal(status.UNAVAILABLE, "the app is stopping");
        await this.#become(context, trustEnd(request, readAt), call);
        return create(OnBecomeLeaderResponseSchema);
      });
    }),
    onLoseLeadership: unary((request: OnLoseLeadershipRequest, call) =>
      this.#entered(request, call, async (context) => {
        const reason = reasonOf(request.reason);
        const agreed = await this.leading.lose(context, reason, context.epoch);
        if (!agreed) throw new Refusal(status.INTERNAL, "hook failed");
        return create(OnLoseLeadershipResponseSchema);
      }),
    ),
    execute: unary((request: ExecuteRequest, call) =>
      this.#entered(request, call, ({ group, epoch }) => {
        const term = this.leading.term(group, epoch);
        if (!term) throw new Refusal(status.UNAVAILABLE, `not in term ${epoch}`);
        const handler = this.handlers.find(request);
        if (!handler) throw new Refusal(status.NOT_FOUND, `no handler for '${request.name}'`);
        return this.#execute(request, call, term, handler);
      }),
    ),
  };

  async #become(context: ClusterContext, trustedUntil: number | undefined, call: Call) {
    try {
      await this.leading.become(context, trustedUntil, call.signal);
    } catch (error) {
      this.log.error(`the hook for becoming leader of ${context.group} failed`, error);
      throw new Refusal(status.INTERNAL, `hook failed: ${kindOf(error)}`);
    }
  }

  async #execute(
    request: ExecuteRequest,
    call: Call,
    term: Term,
    handler: Handler,
  ): Promise<ExecuteResponse> {
    const attempt = new AbortController();
    setMaxListeners(0, attempt.signal); // one for each call that the handler makes
    const release = onAbort([call.signal], (reason) => {
      attempt.abort(reason);
    });
    const context = new Context(request, term, this.sidecar, attempt.signal);
    const answer = await this.leading.run(term, attempt, () => this.#answer(handler, context));
    release();
    // However it ended: a handler that was told to stop may have left its work half done.
    if (attempt.signal.aborted) throw new Refusal(status.UNAVAILABLE, "the attempt was ended");
    return answer;
  }

  async #answer(handler: Handler, context: Context): Promise<ExecuteResponse> {
    try {
      return success(await handler(context));
    } catch (error) {
      if (!isMeant(error) && !context.signal.aborted) {
        this.log.error(`run ${context.runId} of ${context.name} failed`, error);
      }
      return failure(error);
    }
  }

  /** Checks the token, then opens the scope for everything below this call. */
  async #entered<T>(
    request: { readonly context?: ClusterContextMessage | undefined },
    { metadata }: Call,
    task: (context: ClusterContext) => Promise<T>,
  ): Promise<T> {
    const given = metadata.get("baton-token")[0]?.toString() ?? "";
    if (this.token && !this.token.accepts(given)) {
      throw new Refusal(status.UNAUTHENTICATED, "baton-token is missing or wrong");
    }
    const cluster = clusterContextOf(request.context);
    const traceparent = metadata.get("traceparent")[0]?.toString() ?? "";
    return inScope({ cluster, sidecar: this.sidecar, traceparent }, () => task(cluster));
  }
}

/** The name of a reason; one of a later version of the contract has none here. */
function reasonOf(reason: LossReason): Reason {
  return ((LossReason[reason] as string | undefined) ?? "UNSPECIFIED") as Reason;
}
