/** grpc.health.v1 of the app: healthy for as long as it serves. It needs no token, as a kubelet has none. */
import { create } from "@bufbuild/protobuf";
import {
  type ServerWritableStream,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { AppCallback } from "./gen/baton/v1/callback_pb.js";
import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
  HealthCheckResponseSchema,
} from "./gen/grpc/health/v1/health_pb.js";
import { Refusal, unary } from "./server.js";

const SERVICES = ["", AppCallback.typeName];

type Watcher = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/** Answers Check and Watch. */
export class Health {
  #status = Status.SERVING;
  readonly #watchers = new Set<Watcher>();

  readonly implementation: UntypedServiceImplementation = {
    // eslint-disable-next-line @typescript-eslint/require-await -- a refusal is a rejection
    check: unary(async ({ service }: HealthCheckRequest) => {
      if (SERVICES.includes(service)) return this.#answer(service);
      throw new Refusal(status.NOT_FOUND, "unknown service");
    }),
    watch: (call: Watcher) => {
      call.write(this.#answer(call.request.service));
      this.#watchers.add(call);
      call.on("cancelled", () => this.#watchers.delete(call));
    },
  };

  /** No longer healthy; whoever watches is told, and let go. */
  stop(): void {
    this.#status = Status.NOT_SERVING;
    for (const call of this.#watchers) {
      call.write(this.#answer(call.request.service));
      call.end();
    }
    this.#watchers.clear();
  }

  #answer(service: string): HealthCheckResponse {
    const known = SERVICES.includes(service);
    const found = known ? this.#status : Status.SERVICE_UNKNOWN;
    return create(HealthCheckResponseSchema, { status: found });
  }
}
