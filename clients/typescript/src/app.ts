/** The app object: what the user registers, and how it is served beside its sidecar. */
import { Server } from "@grpc/grpc-js";
import { Callbacks, type Handler, Handlers } from "./callbacks.js";
import { errorText } from "./errors.js";
import { AppCallback } from "./gen/baton/v1/callback_pb.js";
import { Health as HealthService } from "./gen/grpc/health/v1/health_pb.js";
import { Health } from "./health.js";
import { type BecomeHook, Hooks, Leading, type LoseHook } from "./leading.js";
import { type Log, quietLog } from "./log.js";
import { serviceOf } from "./rpc.js";
import { listen, shutdown } from "./server.js";
import { type ConnectOptions, Sidecar } from "./sidecar.js";
import { TokenFile } from "./tokens.js";

const APP_ADDRESS = "127.0.0.1:50051";
const DRAIN_MS = 25_000; // the sidecar's own drain time (20 s) and a margin
const STOP_MS = 2000;

/** Where the app listens, and where its sidecar is. */
export interface ServeOptions extends ConnectOptions {
  /** `host:port` or `unix:///path`; else BATON_APP_ADDRESS, else 127.0.0.1:50051. */
  readonly address?: string | undefined;
  /** The token that the sidecar must show; else BATON_APP_TOKEN_FILE, else none. */
  readonly appTokenFile?: string | undefined;
}

/** How `run` ends. */
export interface RunOptions extends ServeOptions {
  /** How long to keep serving until leadership is taken back; 25 s. */
  readonly drainMs?: number | undefined;
  /** Ends it, as SIGTERM does. */
  readonly signal?: AbortSignal | undefined;
}

interface Serving {
  readonly server: Server;
  readonly health: Health;
  readonly leading: Leading;
}

/** An app beside its sidecar: registered handlers and hooks, and the sidecar's services. */
export class Baton extends Sidecar {
  readonly #handlers = new Handlers();
  readonly #hooks = new Hooks();
  readonly #log: Log;
  #serving: Serving | undefined;

  constructor({ log = quietLog }: { readonly log?: Log } = {}) {
    super();
    this.#log = log;
  }

  /** Registers the handler of a schedule, by ticks and by trigger. */
  schedule<P = unknown, S = unknown>(name: string, handler: Handler<P, S>): this {
    return this.#register(this.#handlers.schedules, name, handler as Handler);
  }

  /** Registers the handler of a singleton: it runs for as long as the term lasts. */
  singleton<S = unknown>(name: string, handler: Handler<unknown, S>): this {
    return this.#register(this.#handlers.singletons, name, handler as Handler);
  }

  /** Registers what is done before the first run of a term; an error refuses the term. */
  onBecomeLeader(hook: BecomeHook, group = "default"): this {
    return this.#register(this.#hooks.become, group, hook);
  }

  /** Registers what is done when a term is over. */
  onLoseLeadership(hook: LoseHook, group = "default"): this {
    return this.#register(this.#hooks.lose, group, hook);
  }

  /** Whether this app may act as leader at this instant; never true past the trust time. */
  isLeader(group = "default"): boolean {
    return this.epoch(group) !== undefined;
  }

  /** The fencing token of the term this app leads in now; undefined if it does not lead. */
  epoch(group = "default"): bigint | undefined {
    const term = this.#serving?.leading.terms.get(group);
    return term?.leads() ? term.epoch : undefined;
  }

  /** Serves the app until `close`; returns the address, with the port that was chosen for 0. */
  async start(options: ServeOptions = {}): Promise<string> {
    const token = TokenFile.at(options.appTokenFile, "BATON_APP_TOKEN_FILE");
    this.connect(options);
    const leading = new Leading(this, this.#hooks, this.#log);
    const callbacks = new Callbacks(this, leading, this.#handlers, token, this.#log);
    const health = new Health();
    const server = new Server();
    server.addService(serviceOf(AppCallback), callbacks.implementation);
    server.addService(serviceOf(HealthService), health.implementation);
    this.#serving = { server, health, leading };
    try {
      const address = options.address ?? (process.env.BATON_APP_ADDRESS || APP_ADDRESS);
      return await listen(server, address);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Asks the sidecar to hand over what this app leads, and waits until it has. */
  async drain(timeoutMs = DRAIN_MS, signal?: AbortSignal): Promise<void> {
    const leading = this.#serving?.leading;
    if (!leading) return;
    leading.stopping = true;
    for (const { group } of leading.terms.all()) void this.#resign(group);
    if (!(await leading.idle(timeoutMs, signal))) {
      this.#log.warn("leadership was not taken back in time");
    }
  }

  /** Ends serving at once: every term is over, what runs is told to stop. */
  override async close(): Promise<void> {
    const serving = this.#serving;
    serving?.health.stop();
    await serving?.leading.endAll(STOP_MS);
    if (serving) await shutdown(serving.server, STOP_MS);
    this.#serving = undefined;
    await super.close();
  }

  /**
   * Serves the app as a main program does: SIGTERM and SIGINT end it, a second one at once.
   *
   * In Kubernetes the app gets SIGTERM before its sidecar does: it keeps answering until the sidecar has taken
   * leadership back, or `drainMs` have passed.
   */
  async run({ drainMs, signal, ...options }: RunOptions = {}): Promise<void> {
    const [stop, hurry] = [new AbortController(), new AbortController()];
    const end = () => {
      (stop.signal.aborted ? hurry : stop).abort();
    };
    const names = ["SIGTERM", "SIGINT"] as const;
    for (const name of names) process.on(name, end);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
    try {
      this.#log.info(`serving at ${await this.start(options)}`);
      await aborted(stop.signal);
      await this.drain(drainMs, hurry.signal);
    } finally {
      await this.close();
      for (const name of names) process.off(name, end);
      signal?.removeEventListener("abort", end);
    }
  }

  async #resign(group: string): Promise<void> {
    try {
      await this.leadership.resign(group);
    } catch (error) {
      // It may be handing over already, or be gone.
      this.#log.warn(`resigning ${group}: ${errorText(error)}`);
    }
  }

  #register<T>(registry: Map<string, T>, name: string, value: T): this {
    if (registry.has(name)) throw new Error(`'${name}' is registered already`);
    registry.set(name, value);
    return this;
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener(
      "abort",
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
