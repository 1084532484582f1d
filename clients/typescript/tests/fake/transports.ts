/** The two ways in which the fake reaches an app: by calling it, and over the stream that it opened. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Connection } from "../../src/connection.js";
import {
  AppCallback,
  type ExecuteRequestSchema,
  type ExecuteResponse,
  type OnBecomeLeaderRequestSchema,
  type OnLoseLeadershipRequestSchema,
} from "../../src/gen/baton/v1/callback_pb.js";
import { clusterContextOf, inScope } from "../../src/scope.js";
import { Sidecar } from "../../src/sidecar.js";

export type Become = MessageInitShape<typeof OnBecomeLeaderRequestSchema>;
export type Lose = MessageInitShape<typeof OnLoseLeadershipRequestSchema>;
export type Execute = MessageInitShape<typeof ExecuteRequestSchema>;

export interface DeliverOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** Rejects with a `BatonError` where the app answers with a status. */
export interface Transport {
  become(request: Become): Promise<unknown>;
  lose(request: Lose): Promise<unknown>;
  execute(request: Execute, options?: DeliverOptions): Promise<ExecuteResponse>;
}

/** Calls AppCallback. */
export class CallbackTransport implements Transport {
  constructor(private readonly app: Connection) {}

  async become(request: Become): Promise<void> {
    await this.app.call(AppCallback.method.onBecomeLeader, request, { repeatable: false });
  }

  async lose(request: Lose): Promise<void> {
    await this.app.call(AppCallback.method.onLoseLeadership, request, { repeatable: false });
  }

  async execute(request: Execute, options?: DeliverOptions): Promise<ExecuteResponse> {
    const { traceparent = "", ...rest } = request;
    const scope = { cluster: clusterContextOf(undefined), sidecar: new Sidecar(), traceparent };
    const call = { repeatable: false, timeoutMs: 60_000, ...options };
    return inScope(scope, () => this.app.call(AppCallback.method.execute, rest as Execute, call));
  }
}
