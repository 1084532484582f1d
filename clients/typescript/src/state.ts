/**
 * The key-value data of the cluster. A write is durable before it is acknowledged.
 *
 * Values are of one type, written and read by a codec; without one they are JSON, and bytes are left as they
 * are. Writes carry a request id of their own, so that one whose answer was lost is asked again without
 * being done twice.
 */
import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Connection, pages } from "./connection.js";
import { BatonError, Conflict, isAway, NotFound, SchemaDecodeFailed } from "./errors.js";
import type { RunRefSchema } from "./gen/baton/v1/runs_pb.js";
import { Consistency, type Entry as Message, State as Service } from "./gen/baton/v1/state_pb.js";
import { type Codec, durationOf, jsonCodec } from "./values.js";
import { backoff, pause } from "./waiting.js";

const MODIFY_ROUNDS = 100;
const { get, put, delete: del, has, list, size, clear, watch } = Service.method;

/** Names one attempt of one run. */
export type RunRef = MessageInitShape<typeof RunRefSchema>;

/** How `put` writes. */
export interface PutOptions extends CallOptions {
  /** Write only if the entry has this version; 0n: only if there is none. Else: `Conflict`. */
  readonly expectedVersion?: bigint | undefined;
  /** Gone this long after this write. */
  readonly ttlMs?: number | undefined;
  /** The run on whose behalf this is; it must be live. */
  readonly run?: RunRef | undefined;
  /** Chosen at random unless given: the same id again writes nothing. */
  readonly requestId?: string | undefined;
}

/** One key with its value; `version` rises with every write and never comes back. */
export class Entry<V> {
  readonly key: string;
  readonly raw: Uint8Array;
  readonly version: bigint;
  readonly updatedAt: Date | undefined;
  /** Undefined: never. */
  readonly expiresAt: Date | undefined;
  readonly #codec: Codec<V>;

  constructor(message: Message, codec: Codec<V>) {
    this.key = message.key;
    this.raw = message.value;
    this.version = message.version;
    this.updatedAt = message.updatedAt && timestampDate(message.updatedAt);
    this.expiresAt = message.expiresAt && timestampDate(message.expiresAt);
    this.#codec = codec;
  }

  /** The value; `SchemaDecodeFailed` if the codec cannot read what is stored. */
  get value(): V {
    try {
      return this.#codec.decode(this.raw);
    } catch (error) {
      if (error instanceof BatonError) throw error;
      throw new SchemaDecodeFailed(`${this.key} cannot be decoded`, { cause: error });
    }
  }
}

/** One change told by `watch`; of a deleted entry only key, version and time are known. */
export interface Change<V> {
  readonly deleted: boolean;
  readonly entry: Entry<V>;
}

/** Reads and writes entries; works on any pod. */
export class State<V = unknown> {
  constructor(
    private readonly connection: Connection,
    private readonly codec: Codec<V> = jsonCodec<V>(),
  ) {}

  /** The same entries, with values of another type. Without a codec: JSON, and nothing is checked. */
  as<W>(codec: Codec<W> = jsonCodec<W>()): State<W> {
    return new State(this.connection, codec);
  }

  /** One entry, if there is one. `strong`: sees every write acknowledged before. */
  async get(
    key: string,
    { strong = false, signal }: CallOptions & { readonly strong?: boolean } = {},
  ): Promise<Entry<V> | undefined> {
    const consistency = strong ? Consistency.STRONG : Consistency.CACHED;
    try {
      const { entry } = await this.connection.call(get, { key, consistency }, { signal });
      return entry && this.#entry(entry);
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }

  /** Writes one entry. */
  async put(key: string, value: V, options: PutOptions = {}): Promise<Entry<V>> {
    const { expectedVersion, ttlMs, run, requestId = randomUUID(), signal } = options;
    const request = {
      key,
      value: this.codec.encode(value),
      requestId,
      ...(expectedVersion !== undefined && { expectedVersion }),
      ...(ttlMs !== undefined && { ttl: durationOf(ttlMs) }),
      ...(run && { run }),
    };
    const { entry } = await this.connection.call(put, request, { signal });
    if (!entry) throw new BatonError("the sidecar answered without an entry");
    return this.#entry(entry);
  }

  /**
   * Replaces an entry by what `change` makes of its value, atomically.
   *
   * `change` may be called several times, once for each writer that was faster.
   */
  async modify(
    key: string,
    change: (before: V | undefined) => V | Promise<V>,
    options: CallOptions & Pick<PutOptions, "ttlMs" | "run"> = {},
  ): Promise<Entry<V>> {
    const waits = backoff(10, 250);
    for (let round = 0; round < MODIFY_ROUNDS; round++) {
      const before = await this.get(key, { strong: true, signal: options.signal });
      const after = await change(before?.value);
      try {
        return await this.put(key, after, { ...options, expectedVersion: before?.version ?? 0n });
      } catch (error) {
        if (!(error instanceof Conflict)) throw error;
        await pause(waits(), options.signal);
      }
    }
    throw new Conflict(`${key}: ${MODIFY_ROUNDS} times another writer was faster`);
  }

  /** Deletes one entry; whether there was one. */
  async delete(
    key: string,
    {
      expectedVersion,
      run,
      signal,
    }: CallOptions & Pick<PutOptions, "expectedVersion" | "run"> = {},
  ): Promise<boolean> {
    const request = {
      key,
      ...(expectedVersion !== undefined && { expectedVersion }),
      ...(run && { run }),
    };
    return (await this.connection.call(del, request, { signal, repeatable: false })).deleted;
  }

  /** Whether there is an entry. */
  async has(key: string, options?: CallOptions): Promise<boolean> {
    return (await this.connection.call(has, { key }, options)).exists;
  }

  /** The entries whose keys begin with a prefix, by key. */
  async *list(prefix = "", options?: CallOptions): AsyncGenerator<Entry<V>> {
    const ask = (pageToken: string) => this.connection.call(list, { prefix, pageToken }, options);
    for await (const page of pages(ask)) yield* page.entries.map((entry) => this.#entry(entry));
  }

  /** How many entries there are whose keys begin with a prefix. */
  async size(prefix = "", options?: CallOptions): Promise<bigint> {
    return (await this.connection.call(size, { prefix }, options)).size;
  }

  /** Deletes all entries whose keys begin with a prefix, except owned keys; how many. */
  async clear(prefix = "", { signal }: CallOptions = {}): Promise<bigint> {
    return (await this.connection.call(clear, { prefix }, { signal, repeatable: false })).deleted;
  }

  /**
   * The changes of entries, deletions included; a change may be told twice.
   *
   * A broken stream is opened again after the last version seen. Before any is known that would lose changes
   * silently, so `Unavailable` is thrown instead: watch again, after version 0n.
   */
  async *watch(
    prefix = "",
    { afterVersion, signal }: CallOptions & { readonly afterVersion?: bigint } = {},
  ): AsyncGenerator<Change<V>, never> {
    let waits = backoff();
    let seen = afterVersion;
    for (;;) {
      const request = { prefix, ...(seen !== undefined && { afterVersion: seen }) };
      try {
        for await (const { change } of this.connection.stream(watch, request, { signal })) {
          if (change.case === undefined) continue; // of a later version of the contract
          waits = backoff();
          const entry = this.#entry(change.value);
          if (seen === undefined || entry.version > seen) seen = entry.version;
          yield { deleted: change.case === "deleted", entry };
        }
      } catch (error) {
        if (!isAway(error) || seen === undefined) throw error;
      }
      await pause(waits(), signal);
    }
  }

  #entry(message: Message): Entry<V> {
    return new Entry(message, this.codec);
  }
}
