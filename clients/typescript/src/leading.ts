/**
 * A term from its beginning to its end: hooks, watch, attempts, and their cancellation.
 *
 * Guarantees: the become hook of a term begins only when everything of the term before has ended; what runs
 * in a term is told to stop as soon as the term ends or its trust has run out; and `lose` returns only when
 * all of it has stopped, because its answer lets the successor begin.
 */
import { Cancelled, errorText } from "./errors.js";
import type { LossReason } from "./gen/baton/v1/callback_pb.js";
import type { Log } from "./log.js";
import { type ClusterContext, currentScope, inScope } from "./scope.js";
import type { Sidecar } from "./sidecar.js";
import { type Term, Terms } from "./terms.js";
import { backoff, Locks, onAbort, pause } from "./waiting.js";

// A loop that was blocked finds the expired timer before the renewal that waits in the socket.
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
  readonly watching = new AbortController();

  /** Tells all attempts to stop; whether any was not told before. */
  cancelAttempts(reason: Error): boolean {
    const running = [...this.attempts.keys()].filter(({ signal }) => !signal.aborted);
    for (const attempt of running) attempt.abort(reason);
    return running.length > 0;
  }
}

/** The terms of this app, with what runs in them. */
export class Leading {
  readonly terms = new Terms();
  stopping = false;
  readonly #work = new Map<Term, Work>();
  readonly #endings = new Map<string, Promise<boolean>>();
  readonly #locks = new Locks();
  readonly #onIdle = new Set<() => void>();

  constructor(
    private readonly sidecar: Sidecar,
    private readonly hooks: Hooks,
    private readonly log: Log,
  ) {}

  /** The open term with that epoch, unless its trust has run out. */
  term(group: string, epoch: bigint): Term | undefined {
    const term = this.terms.get(group);
    return term?.epoch === epoch && term.trustLeftMs() > 0 ? term : undefined;
  }

  /** Opens the term, unless it is old news; returns when the hook is through. */
  async become(
    context: ClusterContext,
    trustedUntil: number | undefined,
    asked: AbortSignal,
  ): Promise<void> {
    const { group, epoch } = context;
    if (this.terms.get(group) && this.terms.isNews(group, epoch)) {
      await this.lose(context, "UNSPECIFIED", 0n); // its end was never told
    }
    await this.#locks.run(group, async () => {
      if (!this.terms.isNews(group, epoch)) return;
      const term = this.terms.open(context, trustedUntil);
      const work = new Work();
      this.#endings.delete(group);
      this.#work.set(term, work);
      inScope(undefined, () => {
        void this.#watch(term, work.watching.signal);
        void this.#enforce(term, work);
      });
      this.log.info(`leading ${group}, epoch ${epoch}`);
      await this.#takeUp(term, work, asked);
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

  /** Ends every term because the app stops; waits for it no longer than `timeoutMs`. */
  async endAll(timeoutMs: number): Promise<void> {
    this.stopping = true;
    for (const { context } of this.terms.all()) {
      const scope = { cluster: context, sidecar: this.sidecar, traceparent: "" };
      void inScope(scope, () => this.lose(context, "SHUTDOWN", context.epoch));
    }
    await this.idle(timeoutMs);
  }

  /** Whether, within the time, no term is open any more and none is being ended. */
  async idle(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    const done = new AbortController();
    const wake = () => {
      done.abort();
    };
    const release = onAbort([signal], wake);
    this.#onIdle.add(wake);
    if (this.#work.size > 0) await pause(timeoutMs, done.signal);
    this.#onIdle.delete(wake);
    release();
    return this.#work.size === 0;
  }

  #isEnding(group: string): boolean {
    return [...this.#work.keys()].some((term) => term.group === group && term.over.aborted);
  }

  async #takeUp(term: Term, work: Work, asked: AbortSignal): Promise<void> {
    const unwanted = new AbortController();
    const refuse = () => {
      work.watching.abort(); // nothing may renew a term that was never taken up
      term.distrust();
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
    const work = this.#work.get(term) ?? new Work();
    work.watching.abort();
    work.cancelAttempts(new Cancelled(`term ${term.epoch} of ${term.group} is over`));
    this.log.info(`no longer leading ${term.group}, epoch ${term.epoch}: ${reason}`);
    const context = Object.freeze({ ...told, epoch: term.epoch, isLeader: false });
    try {
      // A become hook may still be unwinding.
      await this.#locks.run(term.group, async () => {
        await Promise.allSettled(work.attempts.values());
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
      if (this.#work.size === 0) for (const wake of this.#onIdle) wake();
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

  /** Tells what still runs to stop when trust was not renewed in time. */
  async #enforce(term: Term, work: Work): Promise<void> {
    const { signal } = work.watching;
    const over = () => signal.aborted;
    while (!over()) {
      const leftMs = Math.min(Math.max(term.trustLeftMs(), 0), 1000);
      await pause(leftMs + RENEWAL_SLACK_MS, signal);
      if (over() || term.trustLeftMs() > 0) continue;
      const reason = `trust in term ${term.epoch} of ${term.group} has run out`;
      if (work.cancelAttempts(new Cancelled(reason))) this.log.warn(reason);
    }
  }
}
