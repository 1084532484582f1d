/** Serves methods written as plain functions of their request, on a real gRPC server. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import {
  Metadata,
  type Server,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { ErrorInfoSchema, StatusSchema } from "../../src/gen/google/rpc/details_pb.js";
import { serviceOf } from "../../src/rpc.js";

/** What the fake refuses a call with. */
export class Refused extends Error {
  constructor(
    readonly code: status,
    readonly details: readonly { schema: DescMessage; init: Record<string, unknown> }[] = [],
  ) {
    super(status[code]);
  }

  /** With a typed reason, as the sidecar gives it. */
  static because(code: status, reason: string, retryable: boolean): Refused {
    const init = { reason, domain: "baton", metadata: { retryable: String(retryable) } };
    return new Refused(code, [{ schema: ErrorInfoSchema, init }]);
  }

  metadata(): Metadata {
    const details = this.details.map(({ schema, init }) => anyPack(schema, create(schema, init)));
    const packed = toBinary(StatusSchema, create(StatusSchema, { code: this.code, details }));
    const metadata = new Metadata();
    if (details.length > 0) metadata.set("grpc-status-details-bin", Buffer.from(packed));
    return metadata;
  }
}

/** The unary methods of a service, or some of them. */
export type Methods<S extends DescService> = {
  [K in keyof S["method"]]?: S["method"][K] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>) => MessageInitShape<O> | Promise<MessageInitShape<O>>
    : never;
};

/** A stream of either Watch. */
export type WatchCall = ServerWritableStream<
  { group: string; prefix: string; afterVersion?: bigint },
  object
>;

type UnaryCall = ServerUnaryCall<object, object>;

/** Adds a service; `admit` sees every unary call first, and may throw what it is refused with. */
export function addService<S extends DescService>(
  server: Server,
  service: S,
  methods: Methods<S>,
  admit: (metadata: Metadata) => void,
  watch?: (call: WatchCall) => void,
): void {
  const definition = serviceOf(service);
  for (const method of service.methods) {
    const written = definition[method.localName];
    if (!written) continue;
    // The methods give fields: they become a message here.
    written.responseSerialize = (fields: Record<string, unknown>) =>
      Buffer.from(toBinary(method.output, create(method.output, fields)));
  }
  const answers = Object.entries(methods as Record<string, (request: object) => object>);
  const unary = answers.map(([name, answer]) => [
    name,
    (call: UnaryCall, respond: sendUnaryData<object>) => {
      void respondTo(call, respond, admit, answer);
    },
  ]);
  const streams = watch && { watch };
  server.addService(definition, { ...Object.fromEntries(unary), ...streams } as never);
}

async function respondTo(
  call: UnaryCall,
  respond: sendUnaryData<object>,
  admit: (metadata: Metadata) => void,
  answer: (request: object) => object | Promise<object>,
): Promise<void> {
  try {
    admit(call.metadata);
    respond(null, await answer(call.request));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    respond({ code: error.code, details: error.message, metadata: error.metadata() });
  }
}

/** Tells everybody who watches when to look again. */
export class Watchers {
  readonly #senders = new Set<() => void>();

  add(call: WatchCall, send: () => void): void {
    this.#senders.add(send);
    call.on("cancelled", () => this.#senders.delete(send));
    call.on("close", () => this.#senders.delete(send));
    send();
  }

  tell(): void {
    for (const send of this.#senders) send();
  }
}
