/** The signals of a main program: the first one asks it to stop, the second one to hurry. */

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Runs `task`; `stop` resolves with the first signal, `hurry` is aborted by the second one. */
export async function untilStopped(
  signal: AbortSignal | undefined,
  task: (stop: Promise<void>, hurry: AbortSignal) => Promise<void>,
): Promise<void> {
  const [stop, hurry] = [new AbortController(), new AbortController()];
  const end = () => {
    (stop.signal.aborted ? hurry : stop).abort();
  };
  for (const name of SIGNALS) process.on(name, end);
  signal?.addEventListener("abort", end);
  if (signal?.aborted) end();
  try {
    await task(aborted(stop.signal), hurry.signal);
  } finally {
    for (const name of SIGNALS) process.off(name, end);
    signal?.removeEventListener("abort", end);
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener(
      "abort",
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
