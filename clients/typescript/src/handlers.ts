/** What the app can execute, by kind and name. */
import type { Context } from "./context.js";
import type { ExecuteRequest } from "./gen/baton/v1/callback_pb.js";
import { RunKind } from "./gen/baton/v1/runs_pb.js";

/** Executes one attempt; what it returns or throws is the outcome. */
export type Handler<P = unknown, S = unknown> = (context: Context<P, S>) => unknown;

/** The registered handlers. */
export class Handlers {
  readonly schedules = new Map<string, Handler>();
  readonly singletons = new Map<string, Handler>();

  /** The handler for a run; undefined: this app does not know it. */
  find({ kind, name }: ExecuteRequest): Handler | undefined {
    return (kind === RunKind.SINGLETON ? this.singletons : this.schedules).get(name);
  }
}
