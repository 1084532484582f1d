/** Durable promises: made here or by a run, awaited here, completed by whoever holds the token. */
import type { CallOptions, Connection } from "./connection.js";
import { DeadlineExceeded, DeferredFailed, isAway } from "./errors.js";
import {
  type Deferred as Message,
  Deferreds as Service,
  DeferredState,
} from "./gen/baton/v1/deferreds_pb.js";
import { present } from "./present.js";
import type { RunRef } from "./state.js";
import { durationOf, fromJson, toBytes } from "./values.js";
import { backoff, pause } from "./waiting.js";

const { create, await: wait, complete, fail, get } = Service.method;
const AWAIT_MS = 30_000;

/** A promise; hand out `token`, then wait for its value. */
export class Deferred<V = unknown> {
  constructor(
    readonly token: string,
    private readonly deferreds: Deferreds,
  ) {}

  /** Waits for it, however long that takes: its value from JSON, or `DeferredFailed`. */
  async value(options?: CallOptions): Promise<V> {
    return fromJson(await this.bytes(options)) as V;
  }

  /** Waits for it; its value as bytes. */
  async bytes(options?: CallOptions): Promise<Uint8Array> {
    const { state, value, error } = await this.deferreds.wait(this.token, options);
    if (state === DeferredState.COMPLETED) return value;
    throw new DeferredFailed(error || "expired");
  }
}

/** Makes, awaits and completes deferreds; works on any pod. */
export class Deferreds {
  constructor(private readonly connection: Connection) {}

  /** The deferred of that name (of that run): made, or the same one again. */
  async create<V = unknown>(
    name: string,
    { ttlMs, run, signal }: CallOptions & { readonly ttlMs?: number; readonly run?: RunRef } = {},
  ): Promise<Deferred<V>> {
    const ttl = ttlMs !== undefined && { ttl: durationOf(ttlMs) };
    const request = { name, ...ttl, ...(run && { run }) };
    return new Deferred<V>((await this.connection.call(create, request, { signal })).token, this);
  }

  /** The deferred once it is no longer pending, however long that takes. */
  async wait(token: string, { signal }: CallOptions = {}): Promise<Message> {
    const request = { token, timeout: durationOf(AWAIT_MS) };
    const waits = backoff();
    for (;;) {
      try {
        const options = { signal, timeoutMs: 1.5 * AWAIT_MS };
        return present((await this.connection.call(wait, request, options)).deferred);
      } catch (error) {
        if (!(isAway(error) || error instanceof DeadlineExceeded)) throw error;
        await pause(waits(), signal);
      }
    }
  }

  /** Completes it; the first completion stands, another value is `AlreadyExists`. */
  async complete(token: string, value: unknown = null, options?: CallOptions): Promise<Message> {
    const request = { token, value: toBytes(value) };
    return present((await this.connection.call(complete, request, options)).deferred);
  }

  /** Completes it with an error, for whoever awaits it. */
  async fail(token: string, error: string, options?: CallOptions): Promise<Message> {
    return present((await this.connection.call(fail, { token, error }, options)).deferred);
  }

  /** The deferred as it is now. */
  async get(token: string, options?: CallOptions): Promise<Message> {
    return present((await this.connection.call(get, { token }, options)).deferred);
  }
}
