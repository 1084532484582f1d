/** Where a call comes from, available to everything called below a handler or a hook. */
import { AsyncLocalStorage } from "node:async_hooks";
import { ClusterContextRequired } from "./errors.js";
import type { ClusterContext as Message } from "./gen/baton/v1/callback_pb.js";
import type { Sidecar } from "./sidecar.js";

/** The term, and with a handler the entity, on whose behalf this code runs. */
export interface ClusterContext {
  readonly cluster: string;
  readonly runnerId: string;
  readonly group: string;
  readonly isLeader: boolean;
  readonly epoch: bigint;
  /** `singleton` or `schedule` below a handler, empty below a hook. */
  readonly entityType: string;
  readonly entityId: string;
}

/** What a callback sets for the code below it. */
export interface Scope {
  readonly cluster: ClusterContext;
  readonly sidecar: Sidecar;
  readonly traceparent: string;
}

const scopes = new AsyncLocalStorage<Scope | undefined>();

/** From the message of a callback; an empty group means `default`. */
export function clusterContextOf(message: Message | undefined): ClusterContext {
  return Object.freeze({
    cluster: message?.cluster ?? "",
    runnerId: message?.runnerId ?? "",
    group: message?.group || "default",
    isLeader: message?.isLeader ?? false,
    epoch: message?.epoch ?? 0n,
    entityType: message?.entityType ?? "",
    entityId: message?.entityId ?? "",
  });
}

/** Runs `task` in a scope; `undefined`: outside of all, for what outlives the callback. */
export function inScope<T>(scope: Scope | undefined, task: () => T): T {
  return scopes.run(scope, task);
}

/** The scope of the callback above, if there is one. */
export function currentScope(): Scope | undefined {
  return scopes.getStore();
}

/** The context of the handler or hook above; `ClusterContextRequired` if there is none. */
export function clusterContext(): ClusterContext {
  return required().cluster;
}

/** A new cluster-wide id, from the sidecar of the handler or hook above. */
export async function nextId(): Promise<bigint> {
  return required().sidecar.nextId();
}

function required(): Scope {
  const scope = currentScope();
  if (scope) return scope;
  throw new ClusterContextRequired("no cluster context: call this below a handler or a hook");
}
