/** What holds only for an app that serves AppCallback. */
import assert from "node:assert/strict";
import test from "node:test";
import { status } from "@grpc/grpc-js";
import { Cancelled } from "../src/index.js";
import { beside, eventually } from "./beside.js";

test("cancelling the call, its deadline and a broken connection cancel the handler", async (t) => {
  const { app, fake } = await beside(t);
  let begun = 0;
  const reasons: unknown[] = [];
  app.schedule("slow", async (context) => {
    begun += 1;
    await context.sleep(60_000).catch((reason: unknown) => reasons.push(reason));
  });
  await fake.lead();
  const cancel = new AbortController();
  const cancelled = fake.execute("slow", undefined, undefined, { signal: cancel.signal });
  await eventually(() => begun === 1);
  cancel.abort(new Error("enough"));
  await assert.rejects(cancelled, /enough/);
  await eventually(() => reasons.length === 1);
  const late = fake.execute("slow", undefined, undefined, { timeoutMs: 200 });
  await assert.rejects(late, { code: status.DEADLINE_EXCEEDED });
  await eventually(() => reasons.length === 2);
  const broken = assert.rejects(fake.execute("slow"));
  await eventually(() => begun === 3);
  fake.app.shut();
  await broken;
  await eventually(() => reasons.length === 3);
  assert.ok(reasons.every((reason) => reason instanceof Cancelled));
  assert.ok(app.isLeader());
});

test("the watch survives a sidecar that goes and comes back", async (t) => {
  const { app, fake } = await beside(t);
  await fake.lead("default", 3000);
  const ledAt = performance.now();
  fake.kill();
  await fake.listen();
  while (performance.now() - ledAt < 4000) {
    assert.ok(app.isLeader());
    await new Promise((go) => setTimeout(go, 100));
  }
});
