/**
 * Cluster-wide ids, handed out from a block that is fetched ahead.
 *
 * A block is used for a second at most: an id tells when it was made, and an old block would lie about it.
 */
import { boottime } from "./clock.js";
import type { Connection } from "./connection.js";
import { Ids as Service } from "./gen/baton/v1/ids_pb.js";
import { present } from "./present.js";
import { Locks } from "./waiting.js";

const BLOCK_SIZE = 100;
const BLOCK_MS = 1000;

/** Ids in rising order, whoever asks for them. */
export class Ids {
  #block: bigint[] = [];
  #fetchedAt = 0;
  readonly #locks = new Locks();

  constructor(private readonly connection: Connection) {}

  /** The next id; asks the sidecar when the block is used up or old. */
  async next(): Promise<bigint> {
    return this.#locks.run("block", async () => {
      if (this.#block.length === 0 || boottime() - this.#fetchedAt > BLOCK_MS) {
        const askedAt = boottime();
        const { ids } = await this.connection.call(Service.method.generate, { count: BLOCK_SIZE });
        this.#block = ids;
        this.#fetchedAt = askedAt; // not before: an answer that fails makes nothing new
      }
      return present(this.#block.shift());
    });
  }
}
