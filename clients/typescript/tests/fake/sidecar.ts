/**
 * A tiny sidecar for the tests: real gRPC on loopback, everything in memory.
 *
 * It leads when told to, delivers runs as the contract says, by calling the app or over its stream, and refuses
 * what is not on behalf of the live attempt. `refusals` are answered first, to show what the client makes of errors.
 */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { Metadata, Server, status } from "@grpc/grpc-js";
import { boottime, IS_BOOTTIME } from "../../src/clock.js";
import { Connection } from "../../src/connection.js";
import { type ExecuteResponse, LossReason } from "../../src/gen/baton/v1/callback_pb.js";
import { Deferreds } from "../../src/gen/baton/v1/deferreds_pb.js";
import { Ids } from "../../src/gen/baton/v1/ids_pb.js";
import { Jobs } from "../../src/gen/baton/v1/jobs_pb.js";
import { type Leader, LeaderSchema, Leadership } from "../../src/gen/baton/v1/leadership_pb.js";
import {
  type Checkpoint,
  CheckpointSchema,
  RunKind,
  type RunRef,
  Runs,
  RunSchema,
} from "../../src/gen/baton/v1/runs_pb.js";
import { Schedules } from "../../src/gen/baton/v1/schedules_pb.js";
import { State } from "../../src/gen/baton/v1/state_pb.js";
import { listen } from "../../src/server.js";
import { TokenFile } from "../../src/tokens.js";
import { FakeDeferreds, FakeSchedules } from "./durable.js";
import { FakeJobs } from "./jobs.js";
import { addService, type Methods, Refused, type WatchCall, Watchers } from "./serving.js";
import { FakeState } from "./state.js";
import { FakeStream } from "./stream.js";
import {
  CallbackTransport,
  type DeliverOptions,
  type Execute,
  type Transport,
} from "./transports.js";

const RENEWAL_MS = 200;

/** One run as the fake keeps it. */
export interface Delivery {
  readonly runId: bigint;
  readonly name: string;
  readonly kind: RunKind;
  readonly payload: Uint8Array;
  readonly checkpoints: Checkpoint[];
  attempt: number;
  epoch: bigint;
  live: boolean;
  progress: string;
}

export class FakeSidecar {
  address = "";
  readonly app = new Connection();
  /** How the app is reached. */
  transport: Transport = new CallbackTransport(this.app);
  readonly refusals: Refused[] = [];
  /** The metadata of the last call, and how many there were. */
  metadata = new Metadata();
  calls = 0;

  epoch = 100n;
  leads = false;
  renews = true;
  draining = false;
  /** An older sidecar has no AppStream. */
  hasStream = true;
  trustedMs = 3000;
  /** Sent with every delivery. */
  traceparent = "";
  /** Whether Resign ends the term, once the open runs have ended; and that end. */
  obeysResign = true;
  handOver = Promise.resolve();
  /** The message of a heartbeat that is noted but never answered: whoever sends it stays there. */
  holdsAt: string | undefined;

  readonly state = new FakeState((run) => this.#requireLive(run));
  readonly deliveries: Delivery[] = [];
  readonly jobs: FakeJobs = new FakeJobs(() => this.stream, this.state);
  #id = 0n;
  #server = new Server();
  #renewing: NodeJS.Timeout | undefined;
  readonly #watchers = new Watchers();
  readonly #deferreds = new FakeDeferreds((run) => this.#requireLive(run));
  readonly #schedules = new FakeSchedules();

  constructor(private readonly apiToken = "") {}

  static async start(address = "127.0.0.1:0", apiToken = ""): Promise<FakeSidecar> {
    const fake = new FakeSidecar(apiToken);
    await fake.listen(address);
    return fake;
  }

  async listen(address = this.address): Promise<void> {
    const server = (this.#server = new Server());
    const admit = (metadata: Metadata) => {
      this.#admit(metadata);
    };
    const watchLeader = (call: WatchCall) => {
      this.#watchLeader(call);
    };
    const watchState = (call: WatchCall) => {
      this.state.watch(call);
    };
    addService(server, Leadership, this.#leadership, admit, watchLeader);
    addService(server, State, this.state.methods, admit, watchState);
    addService(server, Runs, this.#runs, admit);
    addService(server, Deferreds, this.#deferreds.methods, admit);
    addService(server, Schedules, this.#schedules.methods, admit);
    addService(server, Ids, this.#ids, admit);
    const watchJob = (call: WatchCall) => {
      this.jobs.watch(call);
    };
    addService(server, Jobs, this.jobs.methods, admit, watchJob);
    if (this.hasStream) this.stream.addTo(server);
    this.address = await listen(server, address);
  }

  /** Breaks every connection at once, as a killed sidecar does. */
  kill(): void {
    this.#server.forceShutdown();
  }

  close(): void {
    clearInterval(this.#renewing);
    this.app.shut();
    this.kill();
  }

  /** Reaches the app over its stream from now on. */
  async useStream(processes = 1): Promise<void> {
    this.transport = this.stream;
    const renew = () => {
      if (this.renews && this.leads) this.#tellTrust();
    };
    this.#renewing = setInterval(renew, RENEWAL_MS);
    while (this.stream.open.length < processes) await new Promise((go) => setTimeout(go, 5));
  }

  callAppAt(address: string, tokenFile?: string): void {
    this.app.open(address, tokenFile ? new TokenFile(tokenFile) : undefined);
  }

  context(group = "default") {
    return { cluster: "test", runnerId: "fake", group, isLeader: true, epoch: this.epoch };
  }

  /** Begins a new term. */
  async lead(group = "default", trustedMs = this.trustedMs): Promise<bigint> {
    this.epoch += 1n;
    this.leads = true;
    this.draining = false;
    this.trustedMs = trustedMs;
    const request = { context: this.context(group), trustedFor: durationFromMs(trustedMs) };
    await this.transport.become(request);
    return this.epoch;
  }

  /** Ends the term; what runs in it is no longer live. */
  async lose(reason = LossReason.LEASE_LOST, group = "default"): Promise<void> {
    this.leads = false;
    for (const delivery of this.deliveries) delivery.live = false;
    this.#watchers.tell();
    const request = { context: { ...this.context(group), isLeader: false }, reason };
    await this.transport.lose(request);
  }

  /** Tells whoever watches that a hand-over has begun. */
  drain(): void {
    this.draining = true;
    this.#watchers.tell();
    this.#tellTrust();
  }

  /** Delivers a new run once. */
  async execute(
    name: string,
    payload?: unknown,
    kind = RunKind.SCHEDULE,
    options?: DeliverOptions,
  ): Promise<ExecuteResponse> {
    const runId = BigInt(this.deliveries.length + 1);
    const bytes = new TextEncoder().encode(payload === undefined ? "" : JSON.stringify(payload));
    const fresh = { attempt: 0, epoch: 0n, live: false, progress: "", checkpoints: [] };
    this.deliveries.push({ runId, name, kind, payload: bytes, ...fresh });
    return this.deliver(runId, options);
  }

  /** Delivers the next attempt of a run. */
  async deliver(runId: bigint, options?: DeliverOptions): Promise<ExecuteResponse> {
    const delivery = this.delivery(runId);
    Object.assign(delivery, { attempt: delivery.attempt + 1, epoch: this.epoch, live: true });
    try {
      return await this.transport.execute(this.#request(delivery), options);
    } finally {
      delivery.live = false;
    }
  }

  delivery(runId: bigint): Delivery {
    const found = this.deliveries.find((delivery) => delivery.runId === runId);
    if (!found) throw new Refused(status.NOT_FOUND);
    return found;
  }

  #request({ runId, name, kind, attempt, payload, checkpoints }: Delivery): Execute {
    const entityType = kind === RunKind.SINGLETON ? "singleton" : "schedule";
    const state = this.state.entries.get(`${entityType}-state:${name}`)?.value;
    return {
      context: { ...this.context(), entityType, entityId: name },
      ...{ runId, name, kind, attempt, payload, checkpoints },
      state: state ?? new Uint8Array(),
      stateVersion: 1,
      idempotencyKey: `run-${runId}`,
      contentType: "application/json",
      scheduledAt: timestampNow(),
      traceparent: this.traceparent,
    };
  }

  #admit(metadata: Metadata): void {
    this.metadata = metadata;
    this.calls += 1;
    const given = metadata.get("baton-token")[0] ?? "";
    if (given !== this.apiToken) throw new Refused(status.UNAUTHENTICATED);
    const refusal = this.refusals.shift();
    if (refusal) throw refusal;
  }

  #requireLive(run: RunRef): Pick<Delivery, "checkpoints" | "progress"> {
    const { runId, attempt, epoch } = run;
    if (this.jobs.isLive(run)) return this.jobs.find(runId).report;
    const found = this.deliveries.find((delivery) => delivery.runId === runId);
    if (found?.live && found.attempt === attempt && found.epoch === epoch) return found;
    throw new Refused(status.FAILED_PRECONDITION);
  }

  readonly #leadership: Methods<typeof Leadership> = {
    get: () => ({ leader: this.#leader() }),
    list: () => ({ leaders: [this.#leader()] }),
    resign: () => {
      if (!this.leads) throw new Refused(status.FAILED_PRECONDITION);
      this.drain();
      if (this.obeysResign) this.handOver = this.#handOver().catch(() => undefined);
      return { leader: this.#leader() };
    },
  };

  readonly #runs: Methods<typeof Runs> = {
    get: ({ runId }) => ({ run: run(this.delivery(runId)) }),
    list: () => ({ runs: this.deliveries.map(run) }),
    checkpoint: ({ run, step, value }) => {
      const point = create(CheckpointSchema, { step, value });
      if (run) this.#requireLive(run).checkpoints.push(point);
      return {};
    },
    heartbeat: ({ run, progress = 0, message = "" }) => {
      if (run) this.#requireLive(run).progress = `${progress} ${message}`;
      return message === this.holdsAt ? new Promise(() => undefined) : {};
    },
  };

  /** The processes that attached. */
  readonly stream = new FakeStream(
    {
      checkpoint: ({ run, step, value }) => this.#runs.checkpoint?.({ run, step, value } as never),
      heartbeat: ({ run, progress, message }) =>
        this.#runs.heartbeat?.({ run, progress, message } as never),
    },
    (metadata) => {
      this.#admit(metadata);
    },
  );

  readonly #ids: Methods<typeof Ids> = {
    generate: ({ count }) => ({ ids: Array.from({ length: count }, () => ++this.#id) }),
  };

  async #handOver(): Promise<void> {
    while (this.deliveries.some(({ live }) => live)) await new Promise((go) => setTimeout(go, 10));
    await this.lose(LossReason.RESIGNED);
  }

  #tellTrust(): void {
    if (this.transport === this.stream) this.stream.open[0]?.send({ trust: [this.#leader()] });
  }

  #leader(): Leader {
    const until = IS_BOOTTIME && {
      trustedUntilBoottime: durationFromMs(Math.round(boottime() + this.trustedMs)),
    };
    const trust = this.leads && { trustedFor: durationFromMs(this.trustedMs), ...until };
    const { leads: isLeader, epoch, draining } = this;
    return create(LeaderSchema, { group: "default", isLeader, epoch, draining, ...trust });
  }

  #watchLeader(call: WatchCall): void {
    const send = () => {
      if (this.renews) call.write({ leader: this.#leader() });
    };
    const timer = setInterval(send, RENEWAL_MS);
    call.on("cancelled", () => {
      clearInterval(timer);
    });
    this.#watchers.add(call, send);
  }
}

function run({ runId, name, progress }: Delivery) {
  return create(RunSchema, { runId, name, progressMessage: progress });
}
