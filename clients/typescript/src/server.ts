/** The app's own gRPC server: promises instead of callbacks, and an address that is really its own. */
import { chmodSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import {
  type handleUnaryCall,
  type Metadata,
  type Server,
  ServerCredentials,
  status,
} from "@grpc/grpc-js";
import { Cancelled } from "./errors.js";

/** Ends a call with a gRPC status. */
export class Refusal extends Error {
  constructor(
    readonly code: status,
    message: string,
  ) {
    super(message);
  }
}

/** What a method learns about its call. */
export interface Call {
  readonly metadata: Metadata;
  /** Aborted when the caller no longer wants an answer, or is gone. */
  readonly signal: AbortSignal;
}

/** A unary method written as a promise. Nothing but a `Refusal` tells its text to the caller. */
export function unary<I, O>(answer: (request: I, call: Call) => Promise<O>): handleUnaryCall<I, O> {
  return (call, respond) => {
    const cancelled = new AbortController();
    call.on("cancelled", () => {
      cancelled.abort(new Cancelled("the sidecar cancelled the call"));
    });
    answer(call.request, { metadata: call.metadata, signal: cancelled.signal }).then(
      (response) => {
        respond(null, response);
      },
      (error: unknown) => {
        const refusal = error instanceof Refusal ? error : new Refusal(status.INTERNAL, "failed");
        respond({ code: refusal.code, details: refusal.message });
      },
    );
  };
}

/** Listens; returns the address with the port that was chosen for 0. */
export async function listen(server: Server, address: string): Promise<string> {
  const isSocketFile = address.startsWith("unix:");
  const path = address.replace(/^unix:(\/\/)?/, "");
  if (isSocketFile) await removeStale(path);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  if (!isSocketFile) return address.replace(/:\d+$/, `:${port}`);
  chmodSync(path, 0o660); // in a pod the sidecar runs as another user of the volume's group
  return address;
}

/** Ends the server; calls that are open may end by themselves for as long as `graceMs`. */
export async function shutdown(server: Server, graceMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, graceMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Removes the socket file that a killed process left behind; one that answers is left alone. */
async function removeStale(path: string): Promise<void> {
  const code = await new Promise<string | undefined>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(undefined);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code);
    });
  });
  if (code === "ECONNREFUSED") unlinkSync(path);
}
