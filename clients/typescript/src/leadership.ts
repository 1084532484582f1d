/** Who leads which group, as any pod's sidecar knows it. */
import { type CallOptions, type Connection, pages } from "./connection.js";
import { type Leader, Leadership as Service } from "./gen/baton/v1/leadership_pb.js";
import { present } from "./present.js";

const { get, list, resign, watch } = Service.method;

/** Reads leadership and gives it up. Whether this app may act now: `Baton.isLeader`. */
export class Leadership {
  constructor(private readonly connection: Connection) {}

  /** Who leads a group now. */
  async get(group = "default", options?: CallOptions): Promise<Leader> {
    return present((await this.connection.call(get, { group }, options)).leader);
  }

  /** Who leads each group, by name. */
  async *list(options?: CallOptions): AsyncGenerator<Leader> {
    const ask = (pageToken: string) => this.connection.call(list, { pageToken }, options);
    for await (const page of pages(ask)) yield* page.leaders;
  }

  /** Begins to hand the group over, on whichever pod it is led. */
  async resign(group = "default", options?: CallOptions): Promise<Leader> {
    return present((await this.connection.call(resign, { group }, options)).leader);
  }

  /** The leader of a group, now and after every change, until the stream breaks. */
  async *watch(group = "default", options?: CallOptions): AsyncGenerator<Leader, never> {
    for await (const { leader } of this.connection.stream(watch, { group }, options)) {
      yield present(leader);
    }
    throw new Error("unreachable: a stream ends with an error");
  }
}
