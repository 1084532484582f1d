/**
 * A term from its start to its end: hooks, trust, attempts, and their cancellation.
 *
 * Guarantees: the become hook of a term starts only after everything of the previous term has ended; the attempts
 * of a term are cancelled as soon as the term ends; a term whose trust expires ends by itself, and its loss hook
 * runs once, whoever ends it; and `lose` returns only when all of it has stopped, because its answer lets the
 * successor start.
 */
import { Cancelled, errorText } from "./errors.js";
import type { LossReason } from "./gen/baton/v1/callback_pb.js";
import type { Leader } from "./gen/baton/v1/leadership_pb.js";
import type { Log } from "./log.js";
import { type ClusterContext, currentScope, inScope } from "./scope.js";
import type { Sidecar } from "./sidecar.js";
import { type Term, Terms } from "./terms.js";
import { backoff, Locks, onAbort, pause, WaitGroup } from "./waiting.js";

// Node runs an expired timer before it reads the socket: after a blocked loop a renewal may be waiting there.
const RENEWAL_SLACK_MS = 100;

/** Why a term ended. */
export type Reason = keyof typeof LossReason;

/** Called before the first run of a term; the signal tells that the term is over already. */
export type BecomeHook = (cluster: ClusterContext, signal: AbortSignal) => unknown;
/** Called when a term is over. */
export type LoseHook = (cluster: ClusterContext, reason: Reason) => unknown;

/** What the app does when it becomes leader of a group, and when it no longer is. */
export class Hooks {
  readonly become = new Map<string, BecomeHook>();
  readonly lose = new Map<string, LoseHook>();
}

/** What runs in one term. */
class Work {
  readonly attempts = new Map<AbortController, Promise<unknown>>();
  /** Ends what renews and enforces the trust. */
  readonly watching = new AbortController();

  constructor(readonly done: () => void) {}

  cancelAttempts(reason: Error): void {
    for (const attempt of this.attempts.keys()) attempt.abort(reason);
  }
}

/** The last term of a group that ended because its trust expired. */
interface Expired {
  readonly epoch: bigint;
  resigned: boolean;
}

/** The terms of this app, with what runs in them. */
export class Leading {
  readonly terms = new Terms();
  stopping = false;
  readonly #work = new Map<Term, Work>();
  readonly #endings = new Map<string, Promise<boolean>>();
  readonly #expired = new Map<string, Expired>();
  readonly #locks = new Locks();
  readonly #open = new WaitGroup();

  /** `watches`: trust is renewed by Leadership.Watch; otherwise `hear` is called with each renewal. */
  constructor(
    private readonly sidecar: Sidecar,
    private readonly hooks: Hooks,
    private readonly log: Log,
    private readonly watches: boolean,
  ) {}

  /** The open term with that epoch, unless its trust has run out. */
  term(group: string, epoch: bigint): Term | undefined {
    const term = this.terms.get(group);
    if (!term) this.#handBack(group, epoch);
    return term?.epoch === epoch && term.trustLeftMs() > 0 ? term : undefined;
  }

  /** Applies a renewal that arrived over the stream. */
  hear(leader: Leader, readAt: number): void {
    const group = leader.group || "default";
    const term = this.terms.get(group);
    if (term) term.hear(leader, readAt);
    else if (leader.isLeader) this.#handBack(group, leader.epoch);
  }

  /** Opens the term, unless it is stale; returns when the hook has returned. */
  async become(
    context: ClusterContext,
    trustedUntil: number | undefined,
    asked: AbortSignal,
  ): Promise<void> {
    const { group, epoch } = context;
    if (this.terms.get(group) && this.terms.isNews(group, epoch)) {
      await this.lose(context, "UNSPECIFIED", 0n); // its loss was never sent
    }
    await this.#locks.run(group, async () => {
      if (!this.terms.isNews(group, epoch)) return;
      const term = this.terms.open(context, trustedUntil);
      const work = new Work(this.#open.add());
      this.#endings.delete(group);
      this.#work.set(term, work);
      inScope(undefined, () => {
        if (this.watches) void this.#watch(term, work.watching.signal);
        void this.#enforce(term, work);
      });
      this.log.info(`leading ${group}, epoch ${epoch}`);
      await this.#takeUp(term, work, asked);
      if (this.#expired.get(group)?.epoch === epoch) throw new Cancelled(expiryOf(term));
    });
  }

  /** Ends the term at once; returns when all has stopped: whether the hook agreed. */
  async lose(context: ClusterContext, reason: Reason, epoch: bigint): Promise<boolean> {
    const term = this.terms.close(context.group, epoch);
    if (term) this.#endings.set(context.group, this.#end(term, context, reason));
    // A sidecar that makes contact must not be told of an old failure for ever.
    if (epoch === 0n && !this.#isEnding(context.group)) return true;
    return this.#endings.get(context.group) ?? true;
  }

  /** Runs an attempt in its term: the term's end is its end too. */
  async run<T>(term: Term, attempt: AbortController, task: () => Promise<T>): Promise<T> {
    const attempts = this.#work.get(term)?.attempts;
    const running = task();
    attempts?.set(attempt, running);
    return running.finally(() => attempts?.delete(attempt));
  }

  /** Ends every open term now; `idle` waits until their hooks have returned. */
  endAll(reason: Reason): void {
    for (const { context } of this.terms.all()) void this.#loseUnasked(context, reason);
  }

  /** Asks the sidecar to hand a group over. */
  async resign(group: string): Promise<void> {
    try {
      await this.sidecar.leadership.resign(group);
    } catch (error) {
      // It may be handing over already, or be gone.
      this.log.warn(`resigning ${group}: ${errorText(error)}`);
    }
  }

  /** Whether, within the time, no term is open and none is being ended. */
  async idle(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#open.idle(timeoutMs, signal);
  }

  #isEnding(group: string): boolean {
    return [...this.#work.keys()].some((term) => term.group === group && term.over.aborted);
  }

  async #takeUp(term: Term, work: Work, asked: AbortSignal): Promise<void> {
    const unwanted = new AbortController();
    const refuse = () => {
      work.watching.abort();
      term.refuse();
    };
    const release = onAbort([term.over, asked], (reason) => {
      refuse();
      unwanted.abort(reason);
    });
    try {
      await this.hooks.become.get(term.group)?.(term.context, unwanted.signal);
    } catch (error) {
      refuse();
      throw error;
    } finally {
      release();
    }
  }

  async #end(term: Term, told: ClusterContext, reason: Reason): Promise<boolean> {
    const work = this.#work.get(term);
    work?.watching.abort();
    work?.cancelAttempts(new Cancelled(`term ${term.epoch} of ${term.group} is over`));
    this.log.info(`no longer leading ${term.group}, epoch ${term.epoch}: ${reason}`);
    const context = Object.freeze({ ...told, epoch: term.epoch, isLeader: false });
    try {
      // A become hook may still be unwinding.
      await this.#locks.run(term.group, async () => {
        if (work) await Promise.allSettled(work.attempts.values());
        const scope = currentScope();
        const hook = this.hooks.lose.get(term.group);
        await inScope(scope && { ...scope, cluster: context }, () => hook?.(context, reason));
      });
      return true;
    } catch (error) {
      this.log.error(`the hook for losing ${term.group} failed`, error);
      return false;
    } finally {
      this.#work.delete(term);
      work?.done();
    }
  }

  /** Renews trust for as long as the term is open; a broken stream is opened again. */
  async #watch(term: Term, signal: AbortSignal): Promise<void> {
    const over = () => signal.aborted;
    let waits = backoff(100, 1000);
    while (!over()) {
      try {
        for await (const leader of this.sidecar.leadership.watch(term.group, { signal })) {
          const readAt = term.clock();
          if (over()) return;
          term.hear(leader, readAt);
          waits = backoff(100, 1000);
        }
      } catch (error) {
        if (!over()) this.log.warn(`watching ${term.group}: ${errorText(error)}`);
      }
      await pause(waits(), signal);
    }
  }

  /** Ends the term if its trust is not renewed in time. */
  async #enforce(term: Term, work: Work): Promise<void> {
    const { signal } = work.watching;
    const expired = () => !signal.aborted && term.trustLeftMs() <= 0;
    while (!signal.aborted) {
      await pause(Math.min(Math.max(term.trustLeftMs(), 0), 1000), signal);
      if (expired()) await pause(RENEWAL_SLACK_MS, signal);
      if (!expired()) continue;
      this.log.warn(expiryOf(term));
      this.#expired.set(term.group, { epoch: term.epoch, resigned: false });
      void this.#loseUnasked(term.context, "LEASE_LOST");
    }
  }

  /** Ends a term that the sidecar did not ask to end. */
  async #loseUnasked(cluster: ClusterContext, reason: Reason): Promise<void> {
    const scope = { cluster, sidecar: this.sidecar, traceparent: "" };
    await inScope(scope, () => this.lose(cluster, reason, cluster.epoch));
  }

  /** The sidecar still counts on a term that expired here, as after a blocked loop: another must start. */
  #handBack(group: string, epoch: bigint): void {
    const expired = this.#expired.get(group);
    if (expired?.epoch !== epoch || expired.resigned) return;
    expired.resigned = true;
    void inScope(undefined, () => this.resign(group));
  }
}

function expiryOf({ epoch, group }: Term): string {
  return `trust in term ${epoch} of ${group} has expired`;
}
