/**
 * The way to the sidecar: one channel, its token, deadlines and repeated questions.
 *
 * Every call has a deadline. A call that is safe to repeat is repeated while the sidecar is UNAVAILABLE, with
 * back-off, for as long as its time allows; every failure comes out as a `BatonError`, an aborted call as
 * the reason of its signal. Streams are not repeated here: only their reader knows where to go on.
 */
import { setMaxListeners } from "node:events";
import {
  create,
  type DescMessage,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import {
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { BatonError, errorOf, isAway, NotConnected, Unavailable } from "./errors.js";
import { definitionOf } from "./rpc.js";
import { currentScope } from "./scope.js";
import type { TokenFile } from "./tokens.js";
import { backoff, onAbort, pause } from "./waiting.js";

const CALL_MS = 10_000;
const OPTIONS: ChannelOptions = {
  "grpc.enable_http_proxy": 0, // the sidecar is on this machine
  "grpc.use_local_subchannel_pool": 1,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1000, // trust lasts three seconds: come back quickly
};

/** What every call to the sidecar may be given. */
export interface CallOptions {
  /** Ends the call; it is then rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

interface Repeating extends CallOptions {
  /** Whether asking twice does no harm; yes, unless said otherwise. */
  readonly repeatable?: boolean;
  readonly timeoutMs?: number;
}

/** A channel to the sidecar, opened by `open` and closed by `shut`. */
export class Connection {
  #client: Client | undefined;
  #token: TokenFile | undefined;
  #closed = new AbortController();

  /** Opens the channel; nothing is sent yet. */
  open(address: string, token: TokenFile | undefined): void {
    if (this.#client) throw new Error("already connected to a sidecar");
    this.#client = new Client(address, credentials.createInsecure(), OPTIONS);
    this.#token = token;
    this.#closed = new AbortController();
    setMaxListeners(0, this.#closed.signal); // one for each open call
  }

  /** Closes the channel; open calls are ended. */
  shut(): void {
    this.#closed.abort(new NotConnected("the connection to the sidecar was closed"));
    this.#client?.close();
    this.#client = undefined;
  }

  /** One answer, or an error as above. */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    init: MessageInitShape<I>,
    { signal, repeatable = true, timeoutMs = CALL_MS }: Repeating = {},
  ): Promise<MessageShape<O>> {
    const request = create(method.input, init);
    const deadline = performance.now() + timeoutMs;
    const waits = backoff();
    for (;;) {
      try {
        return await this.#once(method, request, deadline - performance.now(), signal);
      } catch (error) {
        if (!repeatable || !isAway(error)) throw error;
        const waitMs = Math.max(waits(), error.retryAfterMs ?? 0);
        if (performance.now() + waitMs >= deadline) throw error;
        await pause(waitMs, signal);
      }
    }
  }

  /** The messages of a stream until it breaks, which is an error as above. */
  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    init: MessageInitShape<I>,
    { signal }: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, never> {
    const { path, requestSerialize, responseDeserialize } = definitionOf(method);
    const call = this.#open.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      create(method.input, init),
      this.#metadata(),
    );
    call.on("error", () => undefined); // also after the reader has gone
    let ended: { readonly reason: unknown } | undefined;
    const release = onAbort([signal, this.#closed.signal], (reason) => {
      ended = { reason };
      call.cancel();
    });
    try {
      for await (const message of call) yield message as MessageShape<O>;
      throw new Unavailable("the sidecar ended the stream", { code: status.UNAVAILABLE });
    } catch (error) {
      if (ended) throw ended.reason;
      throw error instanceof BatonError ? error : errorOf(error as ServiceError);
    } finally {
      release();
      call.cancel();
    }
  }

  /** A stream in both directions; it sends bytes that are serialized already. */
  duplex<O>(
    { parent, name }: DescMethodBiDiStreaming,
    read: (bytes: Buffer) => O,
  ): ClientDuplexStream<Uint8Array, O> {
    const path = `/${parent.typeName}/${name}`;
    const send = (bytes: Uint8Array) =>
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const call = this.#open.makeBidiStreamRequest(path, send, read, this.#metadata());
    const release = onAbort([this.#closed.signal], () => {
      call.cancel();
    });
    call.on("close", release);
    return call;
  }

  async #once<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    signal?.throwIfAborted();
    const { path, requestSerialize, responseDeserialize } = definitionOf(method);
    const { promise, resolve, reject } = settling<MessageShape<O>>();
    const call = this.#open.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      this.#metadata(),
      { deadline: Date.now() + timeoutMs },
      (error, response) => {
        if (response) resolve(response);
        else if (error) reject(errorOf(error, { onBehalfOfRun: namesRun(request) }));
      },
    );
    const release = onAbort([signal, this.#closed.signal], (reason) => {
      reject(reason);
      call.cancel();
    });
    return promise.finally(release);
  }

  get #open(): Client {
    if (this.#client) return this.#client;
    throw new NotConnected("not connected: start the app, or connect, first");
  }

  #metadata(): Metadata {
    const metadata = new Metadata();
    if (this.#token) metadata.set("baton-token", this.#token.current());
    const traceparent = currentScope()?.traceparent;
    if (traceparent) metadata.set("traceparent", traceparent);
    return metadata;
  }
}

/** Every page of a list, in order. */
export async function* pages<P extends { readonly nextPageToken: string }>(
  ask: (pageToken: string) => Promise<P>,
): AsyncGenerator<P> {
  let pageToken = "";
  do {
    const page = await ask(pageToken);
    yield page;
    pageToken = page.nextPageToken;
  } while (pageToken);
}

function namesRun(request: object): boolean {
  return "run" in request && request.run !== undefined;
}

function settling<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
