/**
 * Keeps this process attached to its sidecar: a stream, and a new one with back-off whenever it ends.
 *
 * The end of a stream ends every term of this process at once, as a broken connection does.
 */
import { status } from "@grpc/grpc-js";
import type { Connection } from "./connection.js";
import { type BatonError, errorText } from "./errors.js";
import type { Welcome } from "./gen/baton/v1/stream_pb.js";
import type { Log } from "./log.js";
import { type Hello, Session, type SessionParts } from "./session.js";
import { backoff, pause } from "./waiting.js";

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2000;
const STABLE_MS = 2000;

const ADVICE: ReadonlyMap<status, string> = new Map([
  [status.UNIMPLEMENTED, "upgrade the sidecar, or serve this app with app.serve()"],
  [status.UNAUTHENTICATED, "check BATON_API_TOKEN_FILE against the sidecar's api.token_file"],
  [status.INVALID_ARGUMENT, "the sidecar refused what this app declares"],
]);

/** What an attachment works with. */
export interface AttachmentParts extends Omit<SessionParts, "onWelcome"> {
  readonly connection: Connection;
  readonly hello: () => Hello;
  readonly log: Log;
}

/** The attachment of this process, from `start` to `close`. */
export class Attachment {
  #session: Session | undefined;
  #welcome: Welcome | undefined;
  #leaving = false;
  #logged = "";
  readonly #closed = new AbortController();
  #running = Promise.resolve();

  constructor(private readonly parts: AttachmentParts) {}

  /** Attaches, and stays attached until `close`. */
  start(): void {
    this.#running = this.#run();
  }

  /** Whether the sidecar has accepted this process and the stream is open. */
  get attached(): boolean {
    return this.#session?.welcomed ?? false;
  }

  /** The cluster that the sidecar last named; undefined before the first welcome. */
  get cluster(): string | undefined {
    return this.#welcome?.cluster;
  }

  /** Takes no new runs and no term from now on. */
  leave(): void {
    this.#leaving = true;
    this.#session?.leave();
  }

  /** Ends the stream, after what is waiting was sent. */
  async close(timeoutMs: number): Promise<void> {
    this.#leaving = true;
    this.#closed.abort();
    await this.#session?.close(timeoutMs);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    let waits = backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
    const closed = () => signal.aborted;
    while (!closed()) {
      const openedAt = performance.now();
      const error = await this.#attach();
      if (closed()) return;
      this.#report(error);
      if (performance.now() - openedAt > STABLE_MS) waits = backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
      await pause(ADVICE.has(error.code ?? status.UNKNOWN) ? LONGEST_WAIT_MS : waits(), signal);
    }
  }

  async #attach(): Promise<BatonError> {
    const { connection, hello, leading, executor } = this.parts;
    const onWelcome = (welcome: Welcome) => {
      this.#welcome = welcome;
      this.#logged = "";
      this.parts.log.info(`attached to ${welcome.runnerId} of ${welcome.cluster}`);
    };
    const session = new Session(connection, hello(), { leading, executor, onWelcome });
    this.#session = session;
    if (this.#leaving) session.leave();
    const error = await session.ended;
    this.#session = undefined;
    leading.endAll(this.#leaving ? "SHUTDOWN" : "LEASE_LOST");
    return error;
  }

  /** Logs why this process is not attached, once per change. */
  #report(error: BatonError): void {
    const advice = ADVICE.get(error.code ?? status.UNKNOWN);
    const text = `not attached: ${errorText(error)}${advice ? `; ${advice}` : ""}`;
    if (text === this.#logged) return;
    this.#logged = text;
    if (advice) this.parts.log.error(text, error);
    else this.parts.log.warn(text);
  }
}
