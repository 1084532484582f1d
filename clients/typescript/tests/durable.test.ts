/** Steps and deferreds, over attempts and terms. */
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import {
  AlreadyExists,
  DeferredFailed,
  NotFound,
  Retry,
  SchemaDecodeFailed,
} from "../src/index.js";
import { eventually, resultOf, testBoth as test } from "./beside.js";

test("G5: a step is done once, over attempts", async (t, beside) => {
  const { app, fake } = await beside(t);
  const done: string[] = [];
  app.schedule("order", async (context) => {
    const charge = await context.step("charge", () => {
      done.push("charge");
      return { cents: 100 };
    });
    const raw = await context.step("raw", () => Uint8Array.of(0, 1, 255));
    const nothing: unknown = await context.step<unknown>("nothing", () => undefined);
    if (context.attempt === 1) throw new Retry("restarted");
    return [charge, [...raw], nothing === undefined];
  });
  await fake.lead();
  assert.equal((await fake.execute("order")).outcome.case, "failed");
  const response = await fake.deliver(1n);
  assert.deepEqual(resultOf(response), [{ cents: 100 }, [0, 1, 255], true]);
  assert.deepEqual(done, ["charge"]);
});

test("G5: a step is done once, over a change of leader", async (t, beside) => {
  const { app, fake } = await beside(t);
  const done: number[] = [];
  app.schedule("order", async (context) => {
    await context.step("charge", () => done.push(context.attempt));
    if (context.attempt === 1) await context.sleep(60_000);
    return `attempt ${context.attempt}`;
  });
  await fake.lead();
  const first = assert.rejects(fake.execute("order"), { code: status.UNAVAILABLE });
  await eventually(() => fake.deliveries[0]?.checkpoints.length);
  await fake.lose();
  await first;
  await fake.lead();
  assert.equal(resultOf(await fake.deliver(1n)), "attempt 2");
  assert.deepEqual(done, [1]);
});

test("what a step had done when its attempt was ended is stored if it still counts", async (t, beside) => {
  const { app, fake } = await beside(t);
  let begun = false;
  app.schedule("order", async (context) => {
    await context.step("charge", async () => {
      begun = true;
      await eventually(() => context.signal.aborted);
      return "charged";
    });
  });
  fake.renews = false; // trust runs out, but the sidecar still leads
  await fake.lead("default", 300);
  const run = assert.rejects(fake.execute("order"), { code: status.UNAVAILABLE });
  await eventually(() => begun);
  await run;
  assert.deepEqual(
    fake.delivery(1n).checkpoints.map(({ step }) => step),
    ["charge"],
  );
});

test("steps may be nested and concurrent", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.schedule("order", async (context) => {
    const outer = async () => 1 + (await context.step("inner", () => 1));
    return Promise.all([context.step("outer", outer), context.step("other", () => 5)]);
  });
  await fake.lead();
  assert.deepEqual(resultOf(await fake.execute("order")), [2, 5]);
});

test("a step name used twice fails for good", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.schedule("order", async (context) => {
    await context.step("charge", () => 1);
    await context.step("charge", () => 2);
  });
  await fake.lead();
  const { outcome } = await fake.execute("order");
  assert.ok(outcome.case === "failed");
  assert.deepEqual([outcome.value.code, outcome.value.retryable], ["StepNameReused", false]);
});

test("a failed step is not stored", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.schedule("order", (context) =>
    context.step("charge", () => {
      if (context.attempt === 1) throw new Error("declined");
      return context.attempt;
    }),
  );
  await fake.lead();
  await fake.execute("order");
  assert.equal(resultOf(await fake.deliver(1n)), 2);
});

test("a deferred is awaited over attempts", async (t, beside) => {
  const { app, fake } = await beside(t);
  const tokens: string[] = [];
  app.schedule("approval", async (context) => {
    tokens.push((await context.createDeferred("boss")).token);
    if (context.attempt === 1) throw new Retry("restarted");
    return context.deferred("boss");
  });
  await fake.lead();
  await fake.execute("approval");
  const run = fake.deliver(1n);
  await eventually(() => tokens.length === 2);
  const [token = "", again] = tokens;
  assert.equal(token, again);
  await app.deferreds.complete(token, { approved: true });
  await assert.rejects(app.deferreds.complete(token, { approved: false }), AlreadyExists);
  assert.deepEqual(resultOf(await run), { approved: true });
});

test("deferreds fail, expire, hold bytes and are unknown", async (t, beside) => {
  const { app } = await beside(t);
  const failed = await app.deferreds.create("failed");
  await app.deferreds.fail(failed.token, "refused");
  await assert.rejects(failed.value(), new DeferredFailed("refused"));
  const expiring = await app.deferreds.create("expiring", { ttlMs: 10 });
  await assert.rejects(expiring.value(), new DeferredFailed("expired"));
  const raw = await app.deferreds.create("raw");
  await app.deferreds.complete(raw.token, Uint8Array.of(255));
  assert.deepEqual(await raw.bytes(), Uint8Array.of(255));
  await assert.rejects(raw.value(), SchemaDecodeFailed);
  await assert.rejects(app.deferreds.get("no such token"), NotFound);
});

test("waiting for a deferred ends with its signal", async (t, beside) => {
  const { app } = await beside(t);
  const deferred = await app.deferreds.create("never");
  const signal = AbortSignal.timeout(100);
  await assert.rejects(deferred.value({ signal }), { name: "TimeoutError" });
});
