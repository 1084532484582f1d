/**
 * What this process sends over its stream: one writer, at most one message under way.
 *
 * A message leaves at once while nothing is being written; what comes meanwhile is gathered into the next one.
 * Answers to pings and to changes of leadership are first in every message, so they never wait behind runs.
 * Each entry is serialized as an AttachRequest of its own: concatenated, they are one message with all of them.
 */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { LimitExceeded } from "./errors.js";
import type { ExecuteResponseSchema } from "./gen/baton/v1/callback_pb.js";
import {
  AttachRequestSchema,
  type RunAnswerSchema,
  type StreamCheckpointSchema,
  type StreamHeartbeatSchema,
  type Welcome,
} from "./gen/baton/v1/stream_pb.js";

const FRAME_BYTES = 1024 * 1024;
const FRAME_ENTRIES = 512;
const MESSAGE_BYTES = 4 * FRAME_BYTES;

type Fields = MessageInitShape<typeof AttachRequestSchema>;
type Answer = MessageInitShape<typeof RunAnswerSchema>;

/** What may hold many entries per message. */
export interface Entry {
  readonly checkpoints?: MessageInitShape<typeof StreamCheckpointSchema>[];
  readonly heartbeats?: MessageInitShape<typeof StreamHeartbeatSchema>[];
}

/** Writes one message; calls back when the next one may be written. */
export type Write = (message: Uint8Array, written: () => void) => void;

/** Gathers and writes the messages of one stream. */
export class Outbox {
  #urgent: Uint8Array[] = [];
  #entries: Uint8Array[] = [];
  #messageBytes = MESSAGE_BYTES;
  #frameBytes = FRAME_BYTES;
  #frameEntries = FRAME_ENTRIES;
  #writing = false;
  #scheduled = false;
  #onEmpty: (() => void) | undefined;

  constructor(private readonly write: Write) {}

  /** Respects the limits of the sidecar. */
  limit({ messageBytesMax, frameEntriesMax }: Welcome): void {
    this.#messageBytes = messageBytesMax || MESSAGE_BYTES;
    this.#frameBytes = Math.min(FRAME_BYTES, this.#messageBytes);
    this.#frameEntries = Math.min(FRAME_ENTRIES, frameEntriesMax || FRAME_ENTRIES);
  }

  /** Sends what must not wait: hello, capacity, pong, leadership. */
  urgent(fields: Fields): void {
    this.#urgent.push(serialized(fields));
    this.#flush();
  }

  /** Sends an answer; one that is too large becomes a failure that says so. */
  answer(answer: Answer): void {
    const bytes = serialized({ answers: [answer] });
    const fits = bytes.length <= this.#messageBytes;
    this.#add(fits ? bytes : serialized({ answers: [this.#tooLarge(answer, bytes.length)] }));
  }

  /** Sends a checkpoint or a heartbeat; `LimitExceeded` if it is too large. */
  entry(entry: Entry): void {
    const bytes = serialized(entry);
    if (bytes.length > this.#messageBytes) throw new LimitExceeded(this.#excess(bytes.length));
    this.#add(bytes);
  }

  /** Calls `done` once, as soon as everything is written. */
  whenEmpty(done: () => void): void {
    this.#onEmpty = done;
    this.#flush();
  }

  #add(bytes: Uint8Array): void {
    this.#entries.push(bytes);
    if (this.#writing || this.#scheduled) return;
    this.#scheduled = true;
    // Handlers that end in the same turn of the loop share a message.
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#writing) return;
    if (this.#urgent.length + this.#entries.length === 0) {
      const done = this.#onEmpty;
      this.#onEmpty = undefined;
      done?.();
      return;
    }
    this.#writing = true;
    this.write(this.#frame(), () => {
      this.#writing = false;
      this.#flush();
    });
  }

  #frame(): Uint8Array {
    const urgent = this.#urgent;
    this.#urgent = [];
    let bytes = urgent.reduce((sum, { length }) => sum + length, 0);
    let count = 0;
    for (const { length } of this.#entries) {
      const isFull = count === this.#frameEntries || bytes + length > this.#frameBytes;
      if (isFull && urgent.length + count > 0) break; // a large one has a message of its own
      bytes += length;
      count += 1;
    }
    return Buffer.concat([...urgent, ...this.#entries.splice(0, count)]);
  }

  #tooLarge({ runId, attempt }: Answer, bytes: number): Answer {
    const failed = { code: "TOO_LARGE", message: `the answer has ${this.#excess(bytes)}` };
    const response: MessageInitShape<typeof ExecuteResponseSchema> = {
      outcome: { case: "failed", value: { ...failed, retryable: false } },
    };
    return {
      ...(runId !== undefined && { runId }),
      ...(attempt !== undefined && { attempt }),
      answer: { case: "response", value: response },
    };
  }

  #excess(bytes: number): string {
    return `${bytes} bytes; the sidecar accepts ${this.#messageBytes}`;
  }
}

function serialized(fields: Fields): Uint8Array {
  return toBinary(AttachRequestSchema, create(AttachRequestSchema, fields));
}
