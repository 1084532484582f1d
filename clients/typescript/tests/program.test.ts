/** `run()` and the example, as processes of their own. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { status } from "@grpc/grpc-js";
import { RunKind } from "../src/gen/baton/v1/runs_pb.js";
import { Health } from "../src/gen/grpc/health/v1/health_pb.js";
import { directory, eventually, quietApp, resultOf } from "./beside.js";
import { FakeSidecar } from "./fake/sidecar.js";

const INDEX = new URL("../src/index.js", import.meta.url).href;
const EXAMPLE = fileURLToPath(new URL("../examples/orders.js", import.meta.url));
const PROGRAM = `
import { Baton } from ${JSON.stringify(INDEX)};
const app = new Baton();
app.schedule("slow", async (context) => {
  const drained = new Promise((go) => context.draining.addEventListener("abort", go));
  await context.heartbeat({ message: "begun" });
  await drained;
  await new Promise((go) => setTimeout(go, 300));
  return "finished";
});
app.onLoseLeadership((_, reason) => console.log("lost", reason));
const [address, sidecar, drainMs] = process.argv.slice(1);
await app.run({ address, sidecar, drainMs: Number(drainMs) });
`;

/** A fake, and a program beside it that is led. */
async function program(
  t: TestContext,
  args: (address: string, sidecar: string) => string[],
  env: NodeJS.ProcessEnv = {},
) {
  const path = join(await directory(t), "app.sock");
  const fake = await FakeSidecar.start();
  const process_ = spawn(process.execPath, args(`unix://${path}`, fake.address), {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, ...env },
  });
  t.after(() => {
    process_.kill("SIGKILL");
    fake.close();
  });
  const output = text(process_.stdout);
  await eventually(() => existsSync(path));
  fake.callAppAt(`unix://${path}`);
  await fake.app.call(Health.method.check, {}); // repeated until the app listens
  await fake.lead();
  return { fake, process: process_, output };
}

async function exit(child: ChildProcess): Promise<unknown> {
  if (child.exitCode === null) await once(child, "exit", { signal: AbortSignal.timeout(30_000) });
  return child.exitCode;
}

const inline = (drainMs: number, sidecar?: string) => (address: string, real: string) => [
  ...["--input-type=module", "--eval", PROGRAM],
  ...[address, sidecar ?? real, String(drainMs)],
];

test("G1: after SIGTERM it serves until leadership is handed over", async (t) => {
  const { fake, process, output } = await program(t, inline(20_000));
  const run = fake.execute("slow");
  await eventually(() => fake.deliveries[0]?.progress === "0 begun");
  process.kill("SIGTERM");
  assert.equal(resultOf(await run), "finished");
  assert.equal(await exit(process), 0);
  assert.equal(await output, "lost RESIGNED\n");
});

test("the drain time bounds the wait", async (t) => {
  const { process, output } = await program(t, inline(300, "127.0.0.1:1"));
  process.kill("SIGTERM");
  assert.equal(await exit(process), 0);
  assert.equal(await output, "lost SHUTDOWN\n");
});

test("a second signal does not wait", async (t) => {
  const { fake, process } = await program(t, inline(60_000));
  fake.obeysResign = false;
  process.kill("SIGINT");
  await eventually(() => fake.draining);
  process.kill("SIGINT");
  assert.equal(await exit(process), 0); // far below the drain time
});

test("run ends with its signal", async (t) => {
  const fake = await FakeSidecar.start();
  t.after(() => {
    fake.close();
  });
  const end = new AbortController();
  const path = join(await directory(t), "app.sock");
  const address = `unix://${path}`;
  const running = quietApp().run({ address, sidecar: fake.address, signal: end.signal });
  await eventually(() => existsSync(path));
  fake.callAppAt(address);
  await fake.app.call(Health.method.check, {});
  await fake.lead();
  end.abort();
  await running;
  assert.equal(fake.leads, false);
});

test("the example counts, fails, tries again and keeps its count", async (t) => {
  const { fake } = await program(t, (address, sidecar) => [
    ...[EXAMPLE, "--address", address, "--sidecar", sidecar],
  ]);
  assert.deepEqual(resultOf(await fake.execute("report")), { report: 1 });
  const { outcome } = await fake.execute("flaky");
  assert.ok(outcome.case === "failed" && outcome.value.retryable);
  await fake.deliver(2n);
  assert.equal(resultOf(await fake.deliver(2n)), "succeeded at attempt 3");
  const counted = () => {
    const value = fake.state.entries.get("singleton-state:coordinator")?.value ?? new Uint8Array();
    return value.length > 0 ? (JSON.parse(new TextDecoder().decode(value)) as object) : undefined;
  };
  for (const count of [2, 3]) {
    fake.holdsAt = `count ${count}`; // else the loss may find it in a write, which fails on its own
    const run = assert.rejects(fake.execute("coordinator", undefined, RunKind.SINGLETON), {
      code: status.UNAVAILABLE,
    });
    await eventually(() => fake.deliveries.at(-1)?.progress === `0 count ${count}`);
    assert.deepEqual(counted(), { count });
    await fake.lose();
    await run;
    await fake.lead();
  }
});

test("G5: an order of the example survives the end of a term", async (t) => {
  const ledger = join(await directory(t), "ledger");
  const { fake, process } = await program(
    t,
    (address, sidecar) => [EXAMPLE, "--address", address, "--sidecar", sidecar],
    { ORDERS_LEDGER: ledger, ORDERS_STEP_SECONDS: "0.1" },
  );
  fake.holdsAt = "charge"; // between two steps
  const first = assert.rejects(fake.execute("order-flow", { order: 7 }));
  await eventually(() => fake.deliveries[0]?.progress === "0.4 charge");
  await fake.lose();
  await first;
  fake.holdsAt = undefined;
  await fake.lead();
  assert.deepEqual(resultOf(await fake.deliver(1n)), { order: 7, done: true });
  const lines = readFileSync(ledger, "utf8").trimEnd().split("\n");
  const written = lines.map((line) => JSON.parse(line) as object);
  const steps = ["reserve", "charge", "pack", "ship", "notify"].map((step, index) => ({
    ...{ order: 7, run: 1, step, attempt: index < 2 ? 1 : 2 },
  }));
  assert.deepEqual(written, steps);
  process.kill("SIGTERM");
  assert.equal(await exit(process), 0);
});
