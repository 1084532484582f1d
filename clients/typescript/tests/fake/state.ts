/** The state of the fake: entries with versions that never come back, and their changes. */
import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import type { RunRef } from "../../src/gen/baton/v1/runs_pb.js";
import { type Entry, EntrySchema, type State } from "../../src/gen/baton/v1/state_pb.js";
import { type Methods, Refused, type WatchCall, Watchers } from "./serving.js";

const OWNED = /^(singleton|schedule|job)-state:/;
const PAGE = 2;

export class FakeState {
  readonly entries = new Map<string, Entry>();
  #version = 0n;
  readonly #changes: { readonly entry: Entry; readonly deleted: boolean }[] = [];
  readonly #watchers = new Watchers();

  constructor(private readonly requireLive: (run: RunRef) => unknown) {}

  readonly methods: Methods<typeof State> = {
    get: ({ key }) => {
      const entry = this.entries.get(key);
      if (!entry) throw new Refused(status.NOT_FOUND);
      return { entry };
    },
    put: ({ key, value, expectedVersion, run }) => {
      if (run) this.requireLive(run);
      else if (OWNED.test(key)) throw new Refused(status.FAILED_PRECONDITION);
      this.#expect(key, expectedVersion);
      return { entry: this.write(key, value) };
    },
    delete: ({ key, expectedVersion }) => {
      this.#expect(key, expectedVersion);
      const deleted = this.entries.delete(key);
      if (deleted) this.#change(create(EntrySchema, { key, version: ++this.#version }), true);
      return { deleted };
    },
    has: ({ key }) => ({ exists: this.entries.has(key) }),
    list: ({ prefix, pageToken }) => {
      const [keys, from] = [this.#keys(prefix).sort(), Number(pageToken || "0")];
      const entries = keys.slice(from, from + PAGE).flatMap((key) => this.entries.get(key) ?? []);
      return { entries, nextPageToken: from + PAGE < keys.length ? String(from + PAGE) : "" };
    },
    size: ({ prefix }) => ({ size: BigInt(this.#keys(prefix).length) }),
    clear: ({ prefix }) => {
      const keys = this.#keys(prefix).filter((key) => !OWNED.test(key));
      for (const key of keys) this.entries.delete(key);
      return { deleted: BigInt(keys.length) };
    },
  };

  watch(call: WatchCall): void {
    const { prefix, afterVersion = this.#version } = call.request;
    let seen = afterVersion;
    this.#watchers.add(call, () => {
      for (const { entry, deleted } of this.#changes) {
        if (entry.version <= seen || !entry.key.startsWith(prefix)) continue;
        seen = entry.version;
        call.write({ change: { case: deleted ? "deleted" : "put", value: entry } });
      }
    });
  }

  /** Writes an entry, owned or not. */
  write(key: string, value: Uint8Array): Entry {
    const init = { key, value, version: ++this.#version, updatedAt: timestampNow() };
    const entry = create(EntrySchema, init);
    this.entries.set(key, entry);
    this.#change(entry, false);
    return entry;
  }

  #keys(prefix: string): string[] {
    return [...this.entries.keys()].filter((key) => key.startsWith(prefix));
  }

  #expect(key: string, version: bigint | undefined): void {
    if (version === undefined || version === (this.entries.get(key)?.version ?? 0n)) return;
    throw new Refused(status.ABORTED);
  }

  #change(entry: Entry, deleted: boolean): void {
    this.#changes.push({ entry, deleted });
    this.#watchers.tell();
  }
}
