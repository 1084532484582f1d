/**
 * One stream to the sidecar, from hello to its end: proto/baton/v1/stream.proto in TypeScript.
 *
 * The fields of a message are handled in the order that the contract gives. Everything runs on the one event loop
 * that also runs the handlers, so a blocked loop answers no ping.
 */
import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type ClientDuplexStream, type ServiceError, status } from "@grpc/grpc-js";
import { boottime } from "./clock.js";
import type { Connection } from "./connection.js";
import { type BatonError, Cancelled, errorOf, Unavailable } from "./errors.js";
import type { Executor } from "./execution.js";
import { ClusterContextSchema, type ExecuteRequest } from "./gen/baton/v1/callback_pb.js";
import {
  AppStream,
  type AttachResponse,
  AttachResponseSchema,
  type HelloSchema,
  LeadershipEvent,
  type LeadershipChange,
  type RunAnswerSchema,
  type RunCancel,
  type Welcome,
} from "./gen/baton/v1/stream_pb.js";
import type { Leading } from "./leading.js";
import { Outbox } from "./outbox.js";
import { StreamRecords } from "./records.js";
import { Refusal } from "./server.js";
import { alarm, pause } from "./waiting.js";

const SILENCE_PINGS = 5;
const SILENCE_MS = 10_000;

/** A message, with the reading of the clock before it was decoded. */
interface Received {
  readonly readAt: number;
  readonly message: AttachResponse;
}

/** The fields of the first message. */
export type Hello = MessageInitShape<typeof HelloSchema>;
type Answer = MessageInitShape<typeof RunAnswerSchema>["answer"];

/** What a session hands its messages to. */
export interface SessionParts {
  readonly executor: Executor;
  readonly leading: Leading;
  readonly onWelcome: (welcome: Welcome) => void;
}

/** One open stream. */
export class Session {
  /** Resolves, with the reason, when the stream has ended and its attempts were cancelled. */
  readonly ended: Promise<BatonError>;
  readonly #call: ClientDuplexStream<Uint8Array, Received>;
  readonly #over = new AbortController();
  readonly #outbox: Outbox;
  readonly #records: StreamRecords;
  readonly #attempts = new Map<string, AbortController>();
  #welcome: Welcome | undefined;
  #heardAt = performance.now();
  #closing = false;

  constructor(
    connection: Connection,
    hello: Hello,
    private readonly parts: SessionParts,
  ) {
    const call = (this.#call = connection.duplex(AppStream.method.attach, received));
    this.#outbox = new Outbox((message, written) => call.write(message, written));
    this.#records = new StreamRecords((entry) => {
      this.#send(() => {
        this.#outbox.entry(entry);
      });
    });
    this.ended = new Promise((resolve) => {
      const end = (error: BatonError) => {
        this.#end(error);
        resolve(error);
      };
      call.on("error", (error: ServiceError) => {
        end(errorOf(error));
      });
      call.on("end", () => {
        end(new Unavailable("the sidecar ended the stream", { code: status.UNAVAILABLE }));
      });
    });
    call.on("data", (next: Received) => {
      this.#receive(next);
    });
    this.#outbox.urgent({ hello });
  }

  /** Whether the sidecar has accepted this process. */
  get welcomed(): boolean {
    return this.#welcome !== undefined && !this.#over.signal.aborted;
  }

  /** Takes no new runs and no term from now on. */
  leave(): void {
    this.#send(() => {
      this.#outbox.urgent({ capacity: 0 });
    });
  }

  /** Ends the stream after everything was sent; cancels it if that takes longer. */
  async close(timeoutMs: number): Promise<void> {
    await new Promise(setImmediate); // attempts that have just ended are about to answer
    this.#outbox.whenEmpty(() => {
      this.#closing = true;
      this.#call.end();
    });
    const timer = setTimeout(() => {
      this.cancel();
    }, timeoutMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** Ends the stream at once. */
  cancel(): void {
    this.#call.cancel();
  }

  #receive({ message, readAt }: Received): void {
    this.#heardAt = performance.now();
    const { welcome, leadership, trust, cancels, stored, runs, ping } = message;
    if (welcome) this.#accept(welcome);
    for (const change of leadership) void this.#change(change, readAt);
    for (const leader of trust) this.parts.leading.hear(leader, readAt);
    for (const cancel of cancels) this.#cancel(cancel);
    for (const answer of stored) this.#records.stored(answer);
    for (const run of runs) void this.#run(run);
    if (ping) {
      this.#send(() => {
        this.#outbox.urgent({ pong: { number: ping.number } });
      });
    }
  }

  #accept(welcome: Welcome): void {
    this.#welcome = welcome;
    this.#outbox.limit(welcome);
    if (welcome.healthInterval) void this.#listen(durationMs(welcome.healthInterval));
    this.parts.onWelcome(welcome);
  }

  async #change({ change }: LeadershipChange, readAt: number): Promise<void> {
    if (change.case === undefined) return; // of a later version of the contract
    const event = change.case === "become" ? LeadershipEvent.BECOME : LeadershipEvent.LOSE;
    const context = (change.value.context = this.#located(change.value.context));
    const { group, epoch } = context;
    const { executor } = this.parts;
    const asked = this.#over.signal;
    const work =
      change.case === "become"
        ? executor.become(change.value, { readAt, traceparent: "", asked })
        : executor.lose(change.value, "");
    const error = await work.then(() => undefined, statusOf);
    this.#send(() => {
      this.#outbox.urgent({ leadership: [{ event, group, epoch, ...(error && { error }) }] });
    });
  }

  #cancel({ runId, attempt, reason }: RunCancel): void {
    const key = keyOf(runId, attempt);
    const running = this.#attempts.get(key);
    this.#attempts.delete(key); // no answer is accepted
    running?.abort(new Cancelled(reason || "the sidecar cancelled the attempt"));
  }

  async #run(request: ExecuteRequest): Promise<void> {
    const { runId, attempt } = request;
    const key = keyOf(runId, attempt);
    if (this.#attempts.has(key)) return;
    const running = new AbortController();
    this.#attempts.set(key, running);
    const answer = await this.#executed(request, running);
    if (this.#attempts.get(key) !== running) return;
    this.#attempts.delete(key);
    this.#send(() => {
      this.#outbox.answer({ runId, attempt, answer });
    });
  }

  async #executed(request: ExecuteRequest, running: AbortController): Promise<NonNullable<Answer>> {
    const { deadline, traceparent } = request;
    request.context = this.#located(request.context);
    const expire = () => {
      running.abort(deadlinePassed());
    };
    const stop = deadline && alarm(timestampMs(deadline), expire);
    const options = { traceparent, records: this.#records };
    try {
      const value = await this.parts.executor.execute(request, running, options);
      return { case: "response", value };
    } catch (error) {
      return { case: "status", value: statusOf(error) };
    } finally {
      stop?.();
    }
  }

  /** On the stream, only `welcome` says which cluster and runner it is. */
  #located(context: ExecuteRequest["context"]) {
    const located = context ?? create(ClusterContextSchema);
    located.cluster ||= this.#welcome?.cluster ?? "";
    located.runnerId ||= this.#welcome?.runnerId ?? "";
    return located;
  }

  /** A sidecar that sends nothing for several pings is gone, whatever the connection says. */
  async #listen(intervalMs: number): Promise<void> {
    const { signal } = this.#over;
    const silenceMs = Math.max(SILENCE_PINGS * intervalMs, SILENCE_MS);
    while (!signal.aborted) {
      const heardAt = this.#heardAt;
      await pause(silenceMs, signal);
      await pause(100, signal); // a blocked loop finds the timer before the message in the socket
      if (this.#heardAt === heardAt) this.cancel();
    }
  }

  #send(write: () => void): void {
    if (!this.#over.signal.aborted && !this.#closing) write();
  }

  #end(error: BatonError): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(error);
    this.#records.break();
    const reason = new Cancelled("the stream to the sidecar broke");
    for (const attempt of this.#attempts.values()) attempt.abort(reason);
    this.#attempts.clear();
  }
}

function received(bytes: Buffer): Received {
  const readAt = boottime();
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { readAt, message: fromBinary(AttachResponseSchema, view) };
}

function statusOf(error: unknown) {
  const refusal = error instanceof Refusal ? error : new Refusal(status.INTERNAL, "failed");
  return { code: refusal.code, message: refusal.message };
}

function keyOf(runId: bigint, attempt: number): string {
  return `${runId}/${attempt}`;
}

function deadlinePassed(): Cancelled {
  const code = status.DEADLINE_EXCEEDED;
  return new Cancelled("the deadline of this attempt has passed", { code });
}
