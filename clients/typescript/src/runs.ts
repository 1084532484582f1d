/** Runs: reading and steering them, and what a run wants to keep while it is still running. */
import { type CallOptions, type Connection, pages } from "./connection.js";
import { type Outcome, type Run, Runs as Service, type RunState } from "./gen/baton/v1/runs_pb.js";
import { present } from "./present.js";
import type { RunRef } from "./state.js";

const { get, list, cancel, retry, checkpoint, heartbeat } = Service.method;

/** How far a run is. */
export interface Progress {
  /** From 0 to 1. */
  readonly progress?: number | undefined;
  /** What is being done, for a person. */
  readonly message?: string | undefined;
}

/** The runs of the cluster; works on any pod. */
export class Runs {
  constructor(private readonly connection: Connection) {}

  /** One run, with its history and result. */
  async get(runId: bigint, options?: CallOptions): Promise<Run> {
    return present((await this.connection.call(get, { runId }, options)).run);
  }

  /** Runs, newest first, without history and result; the filters are joined by "and". */
  async *list(
    filter: { readonly name?: string; readonly outcome?: Outcome; readonly state?: RunState } = {},
    options?: CallOptions,
  ): AsyncGenerator<Run> {
    const ask = (pageToken: string) =>
      this.connection.call(list, { ...filter, pageToken }, options);
    for await (const page of pages(ask)) yield* page.runs;
  }

  /** Asks for a run to be ended. */
  async cancel(runId: bigint, note = "", { signal }: CallOptions = {}): Promise<Run> {
    const response = await this.connection.call(
      cancel,
      { runId, note },
      { signal, repeatable: false },
    );
    return present(response.run);
  }

  /** Gives a failed run a new life. */
  async retry(runId: bigint, { signal }: CallOptions = {}): Promise<Run> {
    const response = await this.connection.call(retry, { runId }, { signal, repeatable: false });
    return present(response.run);
  }

  /** Stores the result of a step; handlers say `context.step`. */
  async checkpoint(
    run: RunRef,
    step: string,
    value: Uint8Array,
    options?: CallOptions,
  ): Promise<void> {
    await this.connection.call(checkpoint, { run, step, value }, options);
  }

  /** Reports life and progress of a run; handlers say `context.heartbeat`. */
  async heartbeat(
    run: RunRef,
    { progress, message }: Progress = {},
    options?: CallOptions,
  ): Promise<void> {
    const request = {
      run,
      ...(progress !== undefined && { progress }),
      ...(message !== undefined && { message }),
    };
    await this.connection.call(heartbeat, request, options);
  }
}
