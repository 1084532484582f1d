/** Waits that an AbortSignal ends, and the growing pauses between repeated questions. */
import { setTimeout as timeout } from "node:timers/promises";

/** Resolves after the time, or at once when the signal aborts; it never rejects. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await timeout(ms, undefined, signal && { signal }).catch(() => undefined);
}

/** Waits that double up to `longestMs`, each shortened by up to half at random. */
export function backoff(firstMs = 100, longestMs = 2000): () => number {
  let wait = firstMs;
  return () => {
    const now = wait * (0.5 + Math.random() / 2);
    wait = Math.min(2 * wait, longestMs);
    return now;
  };
}

/** Calls `act` once as soon as one of the signals is aborted; returns how to stop listening. */
export function onAbort(
  signals: readonly (AbortSignal | undefined)[],
  act: (reason: unknown) => void,
): () => void {
  const given = signals.filter((signal) => signal !== undefined);
  const aborted = given.find((signal) => signal.aborted);
  if (aborted) {
    act(aborted.reason);
    return () => undefined;
  }
  const listening = new AbortController();
  for (const signal of given) {
    const listener = () => {
      listening.abort();
      act(signal.reason);
    };
    signal.addEventListener("abort", listener, { once: true, signal: listening.signal });
  }
  return () => {
    listening.abort();
  };
}

/** Tasks of one name run one after the other, in the order they came. */
export class Locks {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(name) ?? Promise.resolve()).then(task);
    this.#last.set(
      name,
      result.catch(() => undefined),
    );
    return result;
  }
}

/** Counts what is open, and lets others wait until nothing is. */
export class WaitGroup {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** One more is open, until the function that this returns is called. */
  add(): () => void {
    this.#count += 1;
    return () => {
      this.#count -= 1;
      if (this.#count === 0) for (const wake of this.#waiting) wake();
    };
  }

  /** Whether, within the time, nothing is open; the signal ends the wait. */
  async idle(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    const done = new AbortController();
    const wake = () => {
      done.abort();
    };
    const release = onAbort([signal], wake);
    this.#waiting.add(wake);
    if (this.#count > 0) await pause(timeoutMs, done.signal);
    this.#waiting.delete(wake);
    release();
    return this.#count === 0;
  }
}

const TIMER_MS = 2 ** 31 - 1; // the longest that a timer of Node waits

/** Calls `act` at a time, in milliseconds since the Unix epoch; returns how to stop it. */
export function alarm(at: number, act: () => void): () => void {
  const set = (): NodeJS.Timeout => {
    const leftMs = at - Date.now();
    return leftMs > TIMER_MS
      ? setTimeout(() => (timer = set()), TIMER_MS)
      : setTimeout(act, leftMs);
  };
  let timer = set();
  return () => {
    clearTimeout(timer);
  };
}
