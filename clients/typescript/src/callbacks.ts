/** The service that the sidecar calls when the app serves: AppCallback of proto/baton/v1/callback.proto. */
import { create } from "@bufbuild/protobuf";
import { status, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { boottime } from "./clock.js";
import type { RunRecords } from "./context.js";
import type { Executor } from "./execution.js";
import {
  type ExecuteRequest,
  type ExecuteResponse,
  type OnBecomeLeaderRequest,
  OnBecomeLeaderResponseSchema,
  type OnLoseLeadershipRequest,
  OnLoseLeadershipResponseSchema,
} from "./gen/baton/v1/callback_pb.js";
import { type Call, Refusal, unary } from "./server.js";
import type { TokenFile } from "./tokens.js";
import { onAbort } from "./waiting.js";

/** Checks the token of each call and hands it to the executor. */
export class Callbacks {
  constructor(
    private readonly executor: Executor,
    private readonly records: RunRecords,
    private readonly token: TokenFile | undefined,
  ) {}

  readonly implementation: UntypedServiceImplementation = {
    onBecomeLeader: unary(async (request: OnBecomeLeaderRequest, call) => {
      const readAt = boottime();
      this.#admit(call);
      const traceparent = traceparentOf(call);
      await this.executor.become(request, { readAt, traceparent, asked: call.signal });
      return create(OnBecomeLeaderResponseSchema);
    }),
    onLoseLeadership: unary(async (request: OnLoseLeadershipRequest, call) => {
      this.#admit(call);
      await this.executor.lose(request, traceparentOf(call));
      return create(OnLoseLeadershipResponseSchema);
    }),
    execute: unary(async (request: ExecuteRequest, call) => {
      this.#admit(call);
      return this.#execute(request, call);
    }),
  };

  async #execute(request: ExecuteRequest, call: Call): Promise<ExecuteResponse> {
    const attempt = new AbortController();
    const release = onAbort([call.signal], (reason) => {
      attempt.abort(reason);
    });
    const traceparent = traceparentOf(call) || request.traceparent;
    const { records } = this;
    return this.executor.execute(request, attempt, { traceparent, records }).finally(release);
  }

  #admit({ metadata }: Call): void {
    const given = metadata.get("baton-token")[0]?.toString() ?? "";
    if (this.token && !this.token.accepts(given)) {
      throw new Refusal(status.UNAUTHENTICATED, "baton-token is missing or wrong");
    }
  }
}

function traceparentOf({ metadata }: Call): string {
  return metadata.get("traceparent")[0]?.toString() ?? "";
}
