/**
 * An example app: what a shop might leave to Baton.
 *
 *     report       a schedule that counts its own runs in its owned state
 *     flaky        a schedule whose first attempts fail
 *     coordinator  a singleton: one in the whole cluster, its counter survives every change of leader
 *     order-flow   five durable steps; each is recorded in the ledger once it is done
 *
 * Start it beside a sidecar: node orders.js --address 127.0.0.1:50051 --sidecar 127.0.0.1:9401
 */
import { open } from "node:fs/promises";
import { parseArgs } from "node:util";
import { Baton, type Context, Result, Retry } from "baton-client";

const say = (text: string) => {
  console.error(`${new Date().toISOString()} orders ${text}`);
};
const log = {
  info: say,
  warn: say,
  error: (text: string, error: unknown) => {
    say(`${text}: ${String(error)}`);
  },
};
const app = new Baton({ log });

app.onBecomeLeader(({ group, epoch }) => {
  say(`leader of ${group}, epoch ${epoch}`);
});

app.onLoseLeadership(({ group, epoch }, reason) => {
  say(`no longer leader of ${group}, epoch ${epoch}: ${reason}`);
});

app.schedule<unknown, { reports?: number }>("report", (context) => {
  const state = context.state.json() ?? {};
  const report = (state.reports ?? 0) + 1;
  say(`report ${report}, due at ${context.scheduledAt.toISOString()}`);
  return new Result({ report }, { ...state, reports: report });
});

app.schedule("flaky", ({ attempt }) => {
  if (attempt < 3) throw new Retry(`attempt ${attempt} always fails`);
  say(`flaky succeeded at attempt ${attempt}`);
  return `succeeded at attempt ${attempt}`;
});

app.singleton<{ count?: number }>("coordinator", async (context) => {
  let count = context.state.json()?.count ?? 0;
  while (!context.draining.aborted) {
    count += 1;
    await context.putState({ count });
    await context.heartbeat({ message: `count ${count}` });
    say(`coordinator counts ${count}`);
    await context.sleep(1000);
  }
});

app.schedule<{ order?: unknown }>("order-flow", async (context) => {
  const order = context.json()?.order ?? Number(context.runId);
  const steps = ["reserve", "charge", "pack", "ship", "notify"];
  for (const [done, step] of steps.entries()) {
    await context.step(step, () => perform(context, step, order));
    await context.heartbeat({ progress: (done + 1) / steps.length, message: step });
  }
  return { order, done: true };
});

/** One step of an order: it takes its time, then leaves a line in the ledger. */
async function perform(context: Context, step: string, order: unknown): Promise<string> {
  await context.sleep(1000 * Number(process.env.ORDERS_STEP_SECONDS ?? "0.2"));
  const line = { order, run: Number(context.runId), step, attempt: context.attempt };
  if (process.env.ORDERS_LEDGER) await append(process.env.ORDERS_LEDGER, JSON.stringify(line));
  say(`order ${JSON.stringify(order)}: ${step}`);
  return step;
}

async function append(path: string, line: string): Promise<void> {
  const ledger = await open(path, "a");
  try {
    await ledger.write(`${line}\n`);
    await ledger.sync();
  } finally {
    await ledger.close();
  }
}

const { values } = parseArgs({
  options: { address: { type: "string" }, sidecar: { type: "string" } },
});
await app.run(values);
