/**
 * Which groups this app leads, in which term, and until when it may believe so.
 *
 *     no term -- OnBecomeLeader(e), e above every epoch lost --> term e
 *     term e  -- OnLoseLeadership(0, or an epoch >= e), or OnBecomeLeader(above e) --> no term, e lost
 *
 * A term is trusted only until `trustedUntil`; a renewal moves that, in either direction. Nothing here waits
 * or does I/O: the clock is an argument, and what follows from a change is the caller's business.
 */
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { boottime, type Clock, IS_BOOTTIME, RESOLUTION_MS } from "./clock.js";
import { Cancelled } from "./errors.js";
import type { Leader } from "./gen/baton/v1/leadership_pb.js";
import type { ClusterContext } from "./scope.js";

interface Trust {
  readonly trustedFor?: Duration | undefined;
  readonly trustedUntilBoottime?: Duration | undefined;
}

/** When the trust given by a message read at `readAt` ends: the earlier of its two readings. */
export function trustEnd(message: Trust, readAt: number): number | undefined {
  const ends: number[] = [];
  if (message.trustedFor) ends.push(readAt + durationMs(message.trustedFor));
  if (IS_BOOTTIME && message.trustedUntilBoottime) {
    ends.push(durationMs(message.trustedUntilBoottime));
  }
  return ends.length > 0 ? Math.min(...ends) : undefined;
}

/** One leadership of one group; without `trustedUntil` the sidecar said nothing about trust. */
export class Term {
  readonly #over = new AbortController();
  readonly #draining = new AbortController();
  #refused = false;

  constructor(
    readonly context: ClusterContext,
    private trustedUntil: number | undefined,
    readonly clock: Clock,
  ) {}

  get group(): string {
    return this.context.group;
  }

  get epoch(): bigint {
    return this.context.epoch;
  }

  /** Aborted when the term is over. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Aborted when the hand-over begins. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Whether the app may act as leader at this instant. */
  leads(): boolean {
    return !this.over.aborted && this.trustedUntil !== undefined && this.trustLeftMs() > 0;
  }

  /** The trust left by the last message, at the least; without any trust time it never ends. */
  trustLeftMs(): number {
    if (this.trustedUntil === undefined) return Infinity;
    return this.trustedUntil - (this.clock() + RESOLUTION_MS);
  }

  /** Ends trust at once; only a later message of this very term can bring it back. */
  distrust(): void {
    this.trustedUntil = 0;
  }

  /** Ends trust for good: the app did not accept the term. */
  refuse(): void {
    this.#refused = true;
    this.distrust();
  }

  /** Applies a renewal, of Leadership.Watch or of the stream: only the newest counts. */
  hear(leader: Leader, readAt: number): void {
    if (this.#refused) return;
    if (!leader.isLeader || leader.epoch !== this.epoch) {
      this.distrust();
      return;
    }
    this.trustedUntil = trustEnd(leader, readAt) ?? 0;
    if (leader.draining) this.#draining.abort(new Cancelled(`${this.group} is being handed over`));
  }

  /** Ends the term. */
  end(): void {
    this.#over.abort(new Cancelled(`term ${this.epoch} of ${this.group} is over`));
  }
}

/** The terms of all groups, and per group the highest epoch lost. */
export class Terms {
  readonly #open = new Map<string, Term>();
  readonly #lost = new Map<string, bigint>();

  constructor(readonly clock: Clock = boottime) {}

  /** The open term of a group, trusted or not. */
  get(group: string): Term | undefined {
    return this.#open.get(group);
  }

  /** Every open term. */
  all(): Term[] {
    return [...this.#open.values()];
  }

  /** Whether OnBecomeLeader with this epoch opens a term: above all lost and held. */
  isNews(group: string, epoch: bigint): boolean {
    return epoch > this.#lostIn(group) && epoch > (this.get(group)?.epoch ?? 0n);
  }

  /** Opens a term that `isNews`, after the one before it was closed. */
  open(context: ClusterContext, trustedUntil: number | undefined): Term {
    const { group, epoch } = context;
    if (this.#open.has(group) || !this.isNews(group, epoch)) {
      throw new Error(`term ${epoch} of ${group} cannot be opened`);
    }
    const term = new Term(context, trustedUntil, this.clock);
    this.#open.set(group, term);
    return term;
  }

  /** Ends the open term if `epoch` is 0 or not below it, and remembers what was lost. */
  close(group: string, epoch: bigint): Term | undefined {
    this.#lose(group, epoch);
    const term = this.get(group);
    if (!term || (epoch > 0n && epoch < term.epoch)) return undefined;
    this.#lose(group, term.epoch);
    this.#open.delete(group);
    term.end();
    return term;
  }

  #lose(group: string, epoch: bigint): void {
    if (epoch > this.#lostIn(group)) this.#lost.set(group, epoch);
  }

  #lostIn(group: string): bigint {
    return this.#lost.get(group) ?? 0n;
  }
}
