/** AppStream of the fake: processes that attached, and what they are sent. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Metadata, type Server, type ServerDuplexStream, status } from "@grpc/grpc-js";
import { errorOfStatus, Unavailable } from "../../src/errors.js";
import { type ExecuteResponse, ExecuteResponseSchema } from "../../src/gen/baton/v1/callback_pb.js";
import type {
  RunsCheckpointRequest,
  RunsHeartbeatRequest,
} from "../../src/gen/baton/v1/runs_pb.js";
import {
  AppStream,
  type AttachRequest,
  type AttachResponse,
  AttachResponseSchema,
  type CallStatus,
  type Hello,
  type LeadershipAnswer,
  LeadershipEvent,
  type RunAnswer,
} from "../../src/gen/baton/v1/stream_pb.js";
import { serviceOf } from "../../src/rpc.js";
import { onAbort } from "../../src/waiting.js";
import { Refused } from "./serving.js";
import type { Become, DeliverOptions, Execute, Lose, Transport } from "./transports.js";

type Call = ServerDuplexStream<AttachRequest, AttachResponse>;
type Fields = MessageInitShape<typeof AttachResponseSchema>;
/** As the fake answers Runs: what is refused is thrown. */
export interface Recorder {
  checkpoint(request: Pick<RunsCheckpointRequest, "run" | "step" | "value">): unknown;
  heartbeat(request: Pick<RunsHeartbeatRequest, "run" | "progress" | "message">): unknown;
}

interface Waiting<T> {
  readonly resolve: (answer: T) => void;
  readonly reject: (error: Error) => void;
}

/** Named answers that are waited for. */
class Expected<T> {
  readonly #waiting = new Map<string, Waiting<T>>();

  async next(key: string): Promise<T> {
    return new Promise<T>((resolve, reject) => this.#waiting.set(key, { resolve, reject }));
  }

  arrived(key: string, answer: T): boolean {
    this.#waiting.get(key)?.resolve(answer);
    return this.#waiting.delete(key);
  }

  reject(error: Error, key?: string): void {
    for (const [name, { reject }] of this.#waiting) {
      if (key === undefined || name === key) reject(error);
    }
  }
}

/** One attached process, from its hello to the end of its stream. */
export class FakeProcess implements Transport {
  hello: Hello | undefined;
  capacity = 0;
  ended = false;
  readonly pongs: bigint[] = [];
  /** How many entries each message had. */
  readonly frames: number[] = [];
  /** Answers that nobody waits for. */
  readonly ignored: RunAnswer[] = [];
  readonly #runs = new Expected<RunAnswer>();
  readonly #changes = new Expected<LeadershipAnswer>();

  constructor(
    private readonly call: Call,
    private readonly recorder: Recorder,
    private readonly stream: FakeStream,
  ) {}

  send(fields: Fields): void {
    if (!this.ended) this.call.write(create(AttachResponseSchema, fields));
  }

  /** Ends the stream with a status. */
  refuse(code: status, details = status[code]): void {
    this.call.emit("error", { code, details });
  }

  async become(request: Become): Promise<void> {
    await this.#told(LeadershipEvent.BECOME, request, { case: "become", value: request });
  }

  async lose(request: Lose): Promise<void> {
    await this.#told(LeadershipEvent.LOSE, request, { case: "lose", value: request });
  }

  async execute(request: Execute, options: DeliverOptions = {}): Promise<ExecuteResponse> {
    const { signal, timeoutMs } = options;
    const { runId = 0n, attempt = 0 } = request;
    const key = `${runId}/${attempt}`;
    const answer = this.#runs.next(key);
    const deadline = timeoutMs !== undefined && {
      deadline: timestampFromMs(Date.now() + timeoutMs),
    };
    const context = { ...request.context, cluster: "", runnerId: "" };
    this.send({ runs: [{ ...request, context, ...deadline } as Execute] });
    const release = onAbort([signal], (reason) => {
      this.cancel(runId, attempt, (reason as Error).message);
    });
    return responseOf(await answer.finally(release));
  }

  /** Cancels an attempt; whoever waits for its answer learns it. */
  cancel(runId: bigint, attempt: number, reason = "cancelled"): void {
    this.send({ cancels: [{ runId, attempt, reason }] });
    this.#runs.reject(new Error(reason), `${runId}/${attempt}`);
  }

  receive(request: AttachRequest): void {
    const { hello, pong, leadership, answers, checkpoints, heartbeats, capacity } = request;
    this.frames.push(answers.length + checkpoints.length + heartbeats.length);
    if (hello) this.#welcome(hello);
    if (capacity !== undefined) this.capacity = capacity;
    if (pong) this.pongs.push(pong.number);
    for (const answer of leadership) this.#changes.arrived(changeKey(answer.event, answer), answer);
    for (const one of checkpoints)
      void this.#record(one.number, () => this.recorder.checkpoint(one));
    for (const one of heartbeats) void this.#record(one.number, () => this.recorder.heartbeat(one));
    for (const answer of answers) {
      const awaited = this.#runs.arrived(`${answer.runId}/${answer.attempt}`, answer);
      if (!awaited) this.ignored.push(answer);
    }
  }

  end(): void {
    this.ended = true;
    const broken = new Unavailable("the stream ended", { code: status.UNAVAILABLE });
    this.#runs.reject(broken);
    this.#changes.reject(broken);
  }

  #welcome(hello: Hello): void {
    this.hello = hello;
    this.capacity = hello.capacity;
    this.send({ welcome: { cluster: "test", runnerId: "fake", ...this.stream.welcome } });
    this.stream.processes.push(this);
  }

  async #told(
    event: LeadershipEvent,
    request: Become | Lose,
    change: { case: "become"; value: Become } | { case: "lose"; value: Lose },
  ): Promise<void> {
    const { group = "", epoch = 0n } = request.context ?? {};
    const answer = this.#changes.next(changeKey(event, { group, epoch }));
    this.send({ leadership: [{ change }] });
    const { error } = await answer;
    if (error) throw errorOfCall(error);
  }

  async #record(number: bigint, record: () => unknown): Promise<void> {
    try {
      await record();
      this.send({ stored: [{ number }] });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.send({ stored: [{ number, error: { code: error.code, message: error.message } }] });
    }
  }
}

/** Everything that attached, oldest first; the first that is open is the primary. */
export class FakeStream implements Transport {
  readonly processes: FakeProcess[] = [];
  /** Part of every welcome. */
  welcome: MessageInitShape<typeof AttachResponseSchema>["welcome"] & object = {
    healthInterval: durationFromMs(1000),
    messageBytesMax: 4 * 1024 * 1024,
    frameEntriesMax: 512,
  };
  /** Refuses every Attach. */
  refusal: Refused | undefined;
  /** How many streams were opened, refused ones included. */
  opened = 0;

  constructor(
    private readonly recorder: Recorder,
    private readonly admit: (metadata: Metadata) => void,
  ) {}

  addTo(server: Server): void {
    server.addService(serviceOf(AppStream), {
      attach: (call: Call) => {
        this.#attach(call);
      },
    });
  }

  get open(): FakeProcess[] {
    return this.processes.filter(({ ended }) => !ended);
  }

  get primary(): FakeProcess {
    const [first] = this.open;
    if (!first) throw new Unavailable("no process is attached", { code: status.UNAVAILABLE });
    return first;
  }

  async become(request: Become): Promise<void> {
    await this.primary.become(request);
  }

  async lose(request: Lose): Promise<void> {
    await this.primary.lose(request);
  }

  async execute(request: Execute, options?: DeliverOptions): Promise<ExecuteResponse> {
    return this.primary.execute(request, options);
  }

  #attach(call: Call): void {
    this.opened += 1;
    const attached = new FakeProcess(call, this.recorder, this);
    call.on("error", () => undefined);
    for (const event of ["cancelled", "end", "close", "error"]) {
      call.on(event, () => {
        attached.end();
      });
    }
    call.on("end", () => {
      call.end();
    });
    try {
      this.admit(call.metadata);
      if (this.refusal) throw this.refusal;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      attached.refuse(error.code);
      return;
    }
    call.on("data", (request: AttachRequest) => {
      attached.receive(request);
    });
  }
}

function changeKey(event: LeadershipEvent, { group, epoch }: { group: string; epoch: bigint }) {
  return `${event} ${group} ${epoch}`;
}

function responseOf({ answer }: RunAnswer): ExecuteResponse {
  if (answer.case === "status") throw errorOfCall(answer.value);
  return answer.value ?? create(ExecuteResponseSchema);
}

function errorOfCall({ code, message }: CallStatus) {
  return errorOfStatus(code, message);
}
