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
