/**
 * A token kept in a file, re-read when the file changes.
 *
 * A file that cannot be read, or holds no line of printable ASCII, keeps its last token; an empty token opens
 * nothing. For a minute after a change the token before it is accepted too, because the two sides do not read
 * the file at the same instant and a run refused as UNAUTHENTICATED has failed for good.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { boottime, type Clock } from "./clock.js";

const PREVIOUS_ACCEPTED_MS = 60_000;
const SENDABLE = /^[\x20-\x7e]+$/; // all that gRPC can carry

/** The token of one direction; `path` must name a readable file with a token in it. */
export class TokenFile {
  #seen = "";
  #token = "";
  #previous = "";
  #changedAt = 0;

  constructor(
    private readonly path: string,
    private readonly clock: Clock = boottime,
  ) {
    this.#reread();
    if (!this.#token) {
      throw new Error(`token file ${path} is empty, or no line of printable ASCII`);
    }
  }

  /** The token file given, else the one named by the environment, else none. */
  static at(path: string | undefined, variable: string): TokenFile | undefined {
    const found = path ?? process.env[variable];
    return found ? new TokenFile(found) : undefined;
  }

  /** The token as the file has it now. */
  current(): string {
    this.#refresh();
    return this.#token;
  }

  /** Whether this is the token; takes the same time however wrong it is. */
  accepts(token: string): boolean {
    this.#refresh();
    const recent = this.clock() - this.#changedAt < PREVIOUS_ACCEPTED_MS;
    const matches = equal(token, this.#token);
    return (this.#previous !== "" && recent && equal(token, this.#previous)) || matches;
  }

  #refresh(): void {
    try {
      this.#reread();
    } catch {
      // Replaced just now, or gone: the token we know stays good.
    }
  }

  #reread(): void {
    const { mtimeNs, size, ino } = statSync(this.path, { bigint: true });
    const seen = `${mtimeNs} ${size} ${ino}`;
    if (seen === this.#seen) return;
    const token = readFileSync(this.path, "utf8").trim();
    this.#seen = seen;
    if (!SENDABLE.test(token) || token === this.#token) return;
    this.#previous = this.#token;
    this.#token = token;
    this.#changedAt = this.clock();
  }
}

function equal(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}
