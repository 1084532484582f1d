/**
 * Checkpoints and heartbeats of runs that arrived over the stream: Runs.Checkpoint and Runs.Heartbeat without the
 * cost of a call, with the same errors.
 *
 * Each has a number, by which the sidecar's answer finds it. While the sidecar's database is away it is sent again,
 * for as long as a call would be; when the stream breaks it fails with `Unavailable`.
 */
import { status } from "@grpc/grpc-js";
import type { CallOptions } from "./connection.js";
import type { RunRecords } from "./context.js";
import { type BatonError, DeadlineExceeded, errorOfStatus, isAway, Unavailable } from "./errors.js";
import type { Stored } from "./gen/baton/v1/stream_pb.js";
import type { Entry } from "./outbox.js";
import type { Progress } from "./runs.js";
import type { RunRef } from "./state.js";
import { backoff, onAbort, pause } from "./waiting.js";

const STORE_MS = 10_000;

type Settle = (error: BatonError | undefined) => void;

/** Sends what runs report, and waits until it is stored. */
export class StreamRecords implements RunRecords {
  #number = 0n;
  #broken = false;
  readonly #pending = new Map<bigint, Settle>();

  constructor(private readonly send: (entry: Entry) => void) {}

  async checkpoint(
    run: RunRef,
    step: string,
    value: Uint8Array,
    options?: CallOptions,
  ): Promise<void> {
    await this.#store((number) => ({ checkpoints: [{ number, run, step, value }] }), options);
  }

  async heartbeat(
    run: RunRef,
    { progress, message }: Progress = {},
    options?: CallOptions,
  ): Promise<void> {
    const report = {
      ...(progress !== undefined && { progress }),
      ...(message !== undefined && { message }),
    };
    await this.#store((number) => ({ heartbeats: [{ number, run, ...report }] }), options);
  }

  /** The sidecar's answer to one of them. */
  stored({ number, error }: Stored): void {
    const settle = this.#pending.get(number);
    settle?.(error && errorOfStatus(error.code, error.message, { onBehalfOfRun: true }));
  }

  /** The stream broke: nothing is stored any more. */
  break(): void {
    this.#broken = true;
    for (const settle of this.#pending.values()) settle(brokenStream());
  }

  async #store(entry: (number: bigint) => Entry, { signal }: CallOptions = {}): Promise<void> {
    const deadline = performance.now() + STORE_MS;
    const waits = backoff();
    for (;;) {
      try {
        await this.#once(entry, deadline - performance.now(), signal);
        return;
      } catch (error) {
        const waitMs = waits();
        const ended = this.#broken || performance.now() + waitMs >= deadline;
        if (ended || !isAway(error)) throw error;
        await pause(waitMs, signal);
      }
    }
  }

  async #once(
    entry: (number: bigint) => Entry,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    signal?.throwIfAborted();
    if (this.#broken) throw brokenStream();
    const number = ++this.#number;
    this.send(entry(number));
    await new Promise<void>((resolve, reject) => {
      const release = onAbort([signal], (reason) => {
        finish(reason as Error);
      });
      const timer = setTimeout(() => {
        const code = status.DEADLINE_EXCEEDED;
        finish(new DeadlineExceeded("the sidecar did not answer in time", { code }));
      }, timeoutMs);
      const finish = (error: Error | undefined) => {
        this.#pending.delete(number);
        clearTimeout(timer);
        release();
        if (error) reject(error);
        else resolve();
      };
      this.#pending.set(number, finish);
    });
  }
}

function brokenStream(): Unavailable {
  return new Unavailable("the stream to the sidecar broke", { code: status.UNAVAILABLE });
}
