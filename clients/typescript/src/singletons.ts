/** The singletons of the cluster, as the configuration names them. */
import { type CallOptions, type Connection, pages } from "./connection.js";
import { type Singleton, Singletons as Service } from "./gen/baton/v1/singletons_pb.js";
import { present } from "./present.js";

const { get, list } = Service.method;

/** Reads singletons. */
export class Singletons {
  constructor(private readonly connection: Connection) {}

  /** One singleton. */
  async get(name: string, options?: CallOptions): Promise<Singleton> {
    return present((await this.connection.call(get, { name }, options)).singleton);
  }

  /** All singletons, by name. */
  async *list(options?: CallOptions): AsyncGenerator<Singleton> {
    const ask = (pageToken: string) => this.connection.call(list, { pageToken }, options);
    for await (const page of pages(ask)) yield* page.singletons;
  }
}
