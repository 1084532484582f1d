/** What handlers are given, and what their answers become. */
import assert from "node:assert/strict";
import plainTest from "node:test";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import { RunKind } from "../src/gen/baton/v1/runs_pb.js";
import {
  Cancelled,
  clusterContext,
  ClusterContextRequired,
  type Context,
  Fail,
  Fenced,
  nextId,
  Result,
  Retry,
  Skip,
} from "../src/index.js";
import { failure } from "../src/outcomes.js";
import { eventually, resultOf, testBoth as test } from "./beside.js";

test("a handler sees the whole request", async (t, beside) => {
  const { app, fake } = await beside(t);
  const seen: Context<{ day: string }, { count: number }>[] = [];
  app.schedule<{ day: string }, { count: number }>("report", (context) => {
    seen.push(context);
    assert.deepEqual(clusterContext(), context.cluster);
    return new Result({ rows: 3 }, { count: (context.state.json()?.count ?? 0) + 1 });
  });
  const epoch = await fake.lead();
  fake.state.write("schedule-state:report", new TextEncoder().encode('{"count":4}'));
  const { outcome } = await fake.execute("report", { day: "monday" });
  assert.ok(outcome.case === "succeeded");
  assert.equal(new TextDecoder().decode(outcome.value.result), '{"rows":3}');
  assert.equal(new TextDecoder().decode(outcome.value.state), '{"count":5}');
  await fake.execute("report");
  const [first, second] = seen;
  assert.deepEqual(first?.json(), { day: "monday" });
  assert.deepEqual([first.runId, first.attempt, first.epoch], [1n, 1, epoch]);
  assert.deepEqual([first.cluster.entityType, first.cluster.entityId], ["schedule", "report"]);
  assert.deepEqual([first.idempotencyKey, first.state.version], ["run-1", 1]);
  assert.ok(Date.now() - first.scheduledAt.getTime() < 10_000);
  assert.equal(second?.json(), undefined);
});

const failing = (error: unknown) => () => {
  throw error;
};

const NO_BIGINT = "TypeError: Do not know how to serialize a BigInt";
const ANSWERS: [string, () => unknown, object][] = [
  ["nothing", () => undefined, { case: "succeeded", result: "" }],
  ["null", () => null, { case: "succeeded", result: "null" }],
  ["bytes", () => new TextEncoder().encode("raw"), { case: "succeeded", result: "raw" }],
  ["Skip", failing(new Skip("holiday")), { case: "skipped", reason: "holiday" }],
  [
    "Retry",
    failing(new Retry("later", { afterMs: 500, code: "BUSY", state: { tried: 1 } })),
    { case: "failed", message: "later", code: "BUSY", retryable: true, afterMs: 500, state: true },
  ],
  [
    "Retry after a fraction",
    failing(new Retry("later", { afterMs: 1234.56789 })),
    { case: "failed", message: "later", code: "", retryable: true, afterMs: 1235 },
  ],
  [
    "Fail",
    failing(new Fail("never", { code: "NO_STOCK" })),
    { case: "failed", message: "never", code: "NO_STOCK", retryable: false },
  ],
  [
    "an unexpected error",
    failing(new TypeError("no such order")),
    { case: "failed", message: "TypeError: no such order", code: "TypeError", retryable: true },
  ],
  [
    "a state that JSON cannot say",
    failing(new Fail("never", { state: 1n })),
    { case: "failed", message: NO_BIGINT, code: "TypeError", retryable: true },
  ],
  [
    "what JSON cannot say",
    () => 1n,
    { case: "failed", message: NO_BIGINT, code: "TypeError", retryable: true },
  ],
];

for (const [name, handler, expected] of ANSWERS) {
  test(`answer: ${name}`, async (t, beside) => {
    const { app, fake } = await beside(t);
    app.schedule("report", handler);
    await fake.lead();
    const { outcome } = await fake.execute("report");
    if (outcome.case === "succeeded") {
      const result = new TextDecoder().decode(outcome.value.result);
      assert.deepEqual({ case: "succeeded", result }, expected);
    } else if (outcome.case === "skipped") {
      assert.deepEqual({ case: "skipped", reason: outcome.value.reason }, expected);
    } else {
      assert.ok(outcome.case === "failed");
      const { message, code, retryable, retryAfter, state } = outcome.value;
      const after = retryAfter && { afterMs: durationMs(retryAfter) };
      const kept = state && { state: true };
      assert.deepEqual({ case: "failed", message, code, retryable, ...after, ...kept }, expected);
    }
  });
}

test("the message of an unexpected error is cut at 4 KiB", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.schedule("report", failing(new Error(`x${"€".repeat(5000)}`)));
  await fake.lead();
  const { outcome } = await fake.execute("report");
  assert.ok(outcome.case === "failed");
  assert.match(outcome.value.message, /^Error: x€+$/);
  assert.equal(new TextEncoder().encode(outcome.value.message).length, 4094);
});

plainTest("with hideErrors only the type of an unexpected error is sent", () => {
  const { outcome } = failure(new TypeError("password=hunter2"), true);
  assert.ok(outcome.case === "failed");
  const { message, code } = outcome.value;
  assert.deepEqual([message, code], ["unhandled TypeError", "TypeError"]);
});

test("unknown handlers and unknown terms are undeliverable", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.schedule("report", () => undefined);
  await assert.rejects(fake.execute("report"), { code: status.UNAVAILABLE });
  await fake.lead();
  await assert.rejects(fake.execute("nobody"), { code: status.NOT_FOUND });
  await assert.rejects(fake.execute("report", undefined, RunKind.SINGLETON), {
    code: status.NOT_FOUND,
  });
  fake.epoch += 1n;
  await assert.rejects(fake.execute("report"), { code: status.UNAVAILABLE });
});

test("a handler that was told to stop has not succeeded", async (t, beside) => {
  const { app, fake } = await beside(t);
  let begun = false;
  app.schedule("half", async ({ signal }) => {
    begun = true;
    await eventually(() => signal.aborted);
    return "half of it";
  });
  await fake.lead();
  const run = assert.rejects(fake.execute("half"), { code: status.UNAVAILABLE });
  await eventually(() => begun);
  await fake.lose();
  await run;
});

test("G3: nothing that an attempt writes after its end is accepted", async (t, beside) => {
  const { app, fake } = await beside(t);
  const refused: unknown[] = [];
  let begun = false;
  app.singleton("coordinator", async (context) => {
    begun = true;
    await eventually(() => context.signal.aborted);
    for (const write of [
      () => context.putState(1),
      () => context.heartbeat(),
      () => context.step("step", () => 1),
      () => app.state.put("mine", 1, { run: context.runRef }),
    ]) {
      await write().catch((error: unknown) => refused.push((error as Error).constructor));
    }
  });
  await fake.lead();
  const run = assert.rejects(fake.execute("coordinator", undefined, RunKind.SINGLETON));
  await eventually(() => begun);
  await fake.lose();
  await run;
  assert.deepEqual(refused, [Cancelled, Cancelled, Cancelled, Fenced]);
  assert.equal(fake.state.entries.size, 0);
});

test("heartbeats and owned state are written while it runs", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.singleton<{ count: number }>("coordinator", async (context) => {
    await context.putState({ count: 1 });
    await context.heartbeat({ progress: 0.5, message: "half way" });
    assert.equal((await app.runs.get(context.runId)).progressMessage, "0.5 half way");
    const entry = await app.state.get("singleton-state:coordinator", { strong: true });
    assert.deepEqual(entry?.value, { count: 1 });
    assert.deepEqual(context.state.json(), { count: 1 });
  });
  await fake.lead();
  const { outcome } = await fake.execute("coordinator", undefined, RunKind.SINGLETON);
  assert.equal(outcome.case, "succeeded");
});

test("the cluster context reaches everything below a handler, and nothing else", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.schedule("report", async () => {
    const below = async () => {
      await new Promise((go) => setTimeout(go, 1));
      return clusterContext().entityId;
    };
    const ids = [await nextId(), await nextId()];
    return [...(await Promise.all([below(), below()])), ...ids.map(String)];
  });
  assert.throws(clusterContext, ClusterContextRequired);
  await assert.rejects(nextId(), ClusterContextRequired);
  await fake.lead();
  assert.deepEqual(resultOf(await fake.execute("report")), ["report", "report", "1", "2"]);
});

test("while the app stops, no new term is taken", async (t, beside) => {
  const { app, fake } = await beside(t);
  await app.drain(100);
  const asked = fake.transport.become({ context: fake.context() });
  await assert.rejects(asked, { code: status.UNAVAILABLE });
});
