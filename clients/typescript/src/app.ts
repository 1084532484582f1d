/** The app object: what the user registers, and how it is run beside its sidecar. */
import { Server } from "@grpc/grpc-js";
import { Attachment } from "./attach.js";
import { Callbacks } from "./callbacks.js";
import {
  scheduleOf,
  type ScheduleOptions,
  singletonOf,
  type SingletonOptions,
} from "./declared.js";
import { Cancelled } from "./errors.js";
import { Executor } from "./execution.js";
import { AppCallback } from "./gen/baton/v1/callback_pb.js";
import { Health as HealthService } from "./gen/grpc/health/v1/health_pb.js";
import { type Handler, Handlers, type JobHandler } from "./handlers.js";
import { Health } from "./health.js";
import { helloOf, type HelloOptions, revisionOf } from "./hello.js";
import type { JobDefaults } from "./job_spec.js";
import type { JobsHome } from "./jobs.js";
import { type BecomeHook, Hooks, Leading, type LoseHook } from "./leading.js";
import { type Log, quietLog } from "./log.js";
import { untilStopped } from "./program.js";
import { serviceOf } from "./rpc.js";
import { listen, shutdown } from "./server.js";
import { type ConnectOptions, Sidecar } from "./sidecar.js";
import { TokenFile } from "./tokens.js";

const APP_ADDRESS = "127.0.0.1:50051";
const DRAIN_MS = 25_000; // the sidecar's own drain time (20 s) and a margin
const STOP_MS = 2000;

/** How an app is made. */
export interface AppOptions {
  readonly log?: Log;
  /** Sends only the type of an unexpected error, not its message. */
  readonly hideErrors?: boolean;
  /** Orders builds in a rollout: what the higher one declares wins; else BATON_REVISION, else 0. */
  readonly revision?: number | bigint;
}

/** Where the sidecar is, and how much this process takes. */
export interface AttachOptions extends ConnectOptions, HelloOptions {}

/** Where the app listens, and where its sidecar is. */
export interface ServeOptions extends ConnectOptions {
  /** `host:port` or `unix:///path`; else BATON_APP_ADDRESS, else 127.0.0.1:50051. */
  readonly address?: string | undefined;
  /** The token that the sidecar must send; else BATON_APP_TOKEN_FILE, else none. */
  readonly appTokenFile?: string | undefined;
}

/** How a main program ends. */
export interface StopOptions {
  /** How long to wait until leadership is handed over and handlers have returned; 25 s. */
  readonly drainMs?: number | undefined;
  /** Stops it, as SIGTERM does. */
  readonly signal?: AbortSignal | undefined;
}

/** How `run` reaches the sidecar, and how it ends. With `address` the app serves; else it attaches. */
export interface RunOptions extends ServeOptions, AttachOptions, StopOptions {}

/** What a started app consists of. */
interface Running {
  readonly leading: Leading;
  readonly executor: Executor;
  readonly served?: { readonly server: Server; readonly health: Health };
  readonly attachment?: Attachment;
}

/** An app beside its sidecar: registered handlers and hooks, and the sidecar's services. */
export class Baton extends Sidecar {
  readonly #handlers = new Handlers();
  readonly #hooks = new Hooks();
  readonly #log: Log;
  readonly #hideErrors: boolean;
  readonly #revision: bigint;
  #running: Running | undefined;

  constructor({ log = quietLog, hideErrors = false, revision }: AppOptions = {}) {
    super();
    this.#log = log;
    this.#hideErrors = hideErrors;
    this.#revision = revisionOf(revision);
  }

  /** Registers the handler of a schedule, by ticks and by trigger; with options it declares the schedule, too. */
  schedule<P = unknown, S = unknown>(name: string, handler: Handler<P, S>): this;
  schedule<P = unknown, S = unknown>(
    name: string,
    options: ScheduleOptions,
    handler: Handler<P, S>,
  ): this;
  schedule(name: string, ...rest: [Handler] | [ScheduleOptions, Handler]): this {
    const { options, handler } = parted(rest);
    const declared = options && scheduleOf(name, options);
    this.#register(this.#handlers.schedules, name, handler);
    if (declared) this.#handlers.declaredSchedules.push(declared);
    return this;
  }

  /** Registers the handler of a singleton, for as long as a term lasts; with options it declares it, too. */
  singleton<S = unknown>(name: string, handler: Handler<unknown, S>): this;
  singleton<S = unknown>(
    name: string,
    options: SingletonOptions,
    handler: Handler<unknown, S>,
  ): this;
  singleton(name: string, ...rest: [Handler] | [SingletonOptions, Handler]): this {
    const { options, handler } = parted(rest);
    const declared = options && singletonOf(name, options);
    this.#register(this.#handlers.singletons, name, handler);
    if (declared) this.#handlers.declaredSingletons.push(declared);
    return this;
  }

  /** Registers the handler of a job; the options are the defaults of the jobs of that name submitted here. */
  job<P = unknown, S = unknown>(name: string, handler: JobHandler<P, S>): this;
  job<P = unknown, S = unknown>(
    name: string,
    options: JobDefaults,
    handler: JobHandler<P, S>,
  ): this;
  job(name: string, ...rest: [JobHandler] | [JobDefaults, JobHandler]): this {
    const { options, handler } = parted(rest);
    this.#register(this.#handlers.jobs, name, handler as Handler);
    if (options) this.#handlers.jobDefaults.set(name, options);
    return this;
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
    const term = this.#running?.leading.terms.get(group);
    return term?.leads() ? term.epoch : undefined;
  }

  /** Whether this process is attached to its sidecar now. */
  get attached(): boolean {
    return this.#running?.attachment?.attached ?? false;
  }

  /**
   * Attaches this process to its sidecar, and stays attached until `close`: no port, no server.
   *
   * It does not wait for the sidecar: one that starts later is found. Register handlers before.
   */
  attach(options: AttachOptions = {}): this {
    const hello = () => helloOf(this.#handlers, options, this.#revision);
    hello(); // a wrong option is an error here
    this.connect(options);
    const { leading, executor } = this.#work({ watches: false });
    const { connection } = this;
    const parts = { connection, hello, leading, executor, log: this.#log };
    const attachment = new Attachment(parts);
    this.#running = { leading, executor, attachment };
    attachment.start();
    return this;
  }

  /** Serves AppCallback until `close`; returns the address, with the port that was chosen for 0. */
  async start(options: ServeOptions = {}): Promise<string> {
    const token = TokenFile.at(options.appTokenFile, "BATON_APP_TOKEN_FILE");
    this.connect(options);
    const { leading, executor } = this.#work({ watches: true });
    const health = new Health();
    const server = new Server();
    const callbacks = new Callbacks(executor, this.runs, token);
    server.addService(serviceOf(AppCallback), callbacks.implementation);
    server.addService(serviceOf(HealthService), health.implementation);
    this.#running = { leading, executor, served: { server, health } };
    try {
      const address = options.address ?? (process.env.BATON_APP_ADDRESS || APP_ADDRESS);
      return await listen(server, address);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Takes nothing new, asks the sidecar to take over what this app leads, and waits for what runs. */
  async drain(timeoutMs = DRAIN_MS, signal?: AbortSignal): Promise<void> {
    const running = this.#running;
    if (!running) return;
    const { leading, executor, attachment } = running;
    leading.stopping = true;
    executor.drain();
    attachment?.leave();
    for (const { group } of leading.terms.all()) void leading.resign(group);
    const waits = [leading.idle(timeoutMs, signal), executor.idle(timeoutMs, signal)];
    const [handedOver, finished] = await Promise.all(waits);
    if (!handedOver) this.#log.warn("leadership was not taken back in time");
    if (!finished) this.#log.warn("handlers did not return in time");
  }

  /** Stops at once: every term ends, every attempt is cancelled. */
  override async close(): Promise<void> {
    const running = this.#running;
    if (running) await stopped(running);
    this.#running = undefined;
    await super.close();
  }

  /**
   * Runs the app as a main program: SIGTERM and SIGINT end it, a second one at once.
   *
   * It attaches to the sidecar. With `address`, or BATON_APP_ADDRESS in the environment, it serves there instead.
   *
   * In Kubernetes the app gets SIGTERM before its sidecar does: it takes no new work, and ends when leadership is
   * handed over and its handlers have returned, or after `drainMs`.
   */
  async run({ drainMs, signal, ...options }: RunOptions = {}): Promise<void> {
    const address = options.address ?? process.env.BATON_APP_ADDRESS;
    if (address) return this.serve(address, { ...options, drainMs, signal });
    await this.#program({ drainMs, signal }, () => {
      this.attach(options);
      return Promise.resolve();
    });
  }

  /** Runs the app as a main program that serves AppCallback, as `run` does otherwise. */
  async serve(
    address?: string,
    { drainMs, signal, ...options }: Omit<RunOptions, "address"> = {},
  ): Promise<void> {
    await this.#program({ drainMs, signal }, async () => {
      this.#log.info(`serving at ${await this.start({ ...options, address })}`);
    });
  }

  async #program({ drainMs, signal }: StopOptions, start: () => Promise<void>): Promise<void> {
    await untilStopped(signal, async (stop, hurry) => {
      try {
        await start();
        await stop;
        await this.drain(drainMs, hurry);
      } finally {
        await this.close();
      }
    });
  }

  protected override jobsHome(): JobsHome {
    return {
      defaultsOf: (name) => this.#handlers.defaultsOf(name),
      cluster: () => this.#running?.attachment?.cluster,
    };
  }

  #work({ watches }: { readonly watches: boolean }) {
    const leading = new Leading(this, this.#hooks, this.#log, watches);
    const executor = new Executor({
      sidecar: this,
      leading,
      handlers: this.#handlers,
      log: this.#log,
      hideErrors: this.#hideErrors,
    });
    return { leading, executor };
  }

  #register<T>(registry: Map<string, T>, name: string, value: T): this {
    if (registry.has(name)) throw new Error(`'${name}' is registered already`);
    if (this.attached) {
      this.#log.warn(`'${name}' was registered after attaching: the next stream announces it`);
    }
    registry.set(name, value);
    return this;
  }
}

function parted<O, H>(rest: [H] | [O, H]): { options?: O; handler: H } {
  return rest.length === 1 ? { handler: rest[0] } : { options: rest[0], handler: rest[1] };
}

async function stopped({ leading, executor, served, attachment }: Running): Promise<void> {
  served?.health.stop();
  leading.stopping = true;
  leading.endAll("SHUTDOWN");
  executor.cancelAll(new Cancelled("the app is stopping"));
  await Promise.all([leading.idle(STOP_MS), executor.idle(STOP_MS)]);
  await attachment?.close(STOP_MS);
  if (served) await shutdown(served.server, STOP_MS);
}
