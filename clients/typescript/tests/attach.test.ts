/** The stream to the sidecar: attaching, reconnecting, cancelling, draining. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import { RunKind } from "../src/gen/baton/v1/runs_pb.js";
import { Baton, Cancelled } from "../src/index.js";
import { VERSION } from "../src/version.js";
import { beside, directory, eventually, resultOf } from "./beside.js";
import { Refused } from "./fake/serving.js";
import { FakeSidecar } from "./fake/sidecar.js";

/** An app with a log that is kept, and a fake that it is not attached to yet. */
async function apart(t: TestContext) {
  const lines: string[] = [];
  const note = (text: string) => lines.push(text);
  const app = new Baton({ log: { info: note, warn: note, error: note } });
  const fake = await FakeSidecar.start();
  t.after(async () => {
    await app.close();
    fake.close();
  });
  return { app, fake, lines };
}

test("hello says who attaches and what it can execute", async (t) => {
  const { app, fake } = await apart(t);
  app.schedule("report", () => undefined).singleton("coordinator", () => undefined);
  app.attach({ sidecar: fake.address, capacity: 7 });
  await fake.useStream();
  const { hello } = fake.stream.primary;
  assert.equal(hello?.client, `baton-typescript/${VERSION}`);
  assert.deepEqual([hello.processId, hello.capacity], [String(process.pid), 7]);
  assert.deepEqual([hello.schedules, hello.singletons], [["report"], ["coordinator"]]);
  await eventually(() => app.attached);
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  assert.equal((JSON.parse(manifest) as { version: string }).version, VERSION);
});

test("a capacity that the sidecar would refuse is an error at once", () => {
  for (const capacity of [0, 10_001, 1.5]) {
    assert.throws(() => new Baton().attach({ capacity }), RangeError);
  }
});

test("runs have the cluster and the runner of the welcome", async (t) => {
  const { app, fake } = await beside(t, "stream");
  app.schedule("report", ({ cluster }) => [cluster.cluster, cluster.runnerId]);
  await fake.lead();
  assert.deepEqual(resultOf(await fake.execute("report")), ["test", "fake"]);
});

test("pings are answered by the loop that runs the handlers", async (t) => {
  const { app, fake } = await beside(t, "stream");
  app.schedule("blocking", () => {
    const end = performance.now() + 400;
    while (performance.now() < end);
  });
  await fake.lead();
  const { primary } = fake.stream;
  primary.send({ ping: { number: 1n } });
  await eventually(() => primary.pongs.length === 1);
  const run = fake.execute("blocking");
  await new Promise((go) => setTimeout(go, 100)); // this loop is blocked, too: it is the same process
  primary.send({ ping: { number: 2n } });
  await run;
  await eventually(() => primary.pongs.length === 2);
  assert.deepEqual(primary.pongs, [1n, 2n]);
});

test("a cancelled attempt stops and is not answered", async (t) => {
  const { app, fake } = await beside(t, "stream");
  const reasons: unknown[] = [];
  app.schedule("slow", async (context) => {
    await context.sleep(60_000).catch((reason: unknown) => reasons.push(reason));
  });
  app.schedule("report", () => "done");
  await fake.lead();
  const cancel = new AbortController();
  const run = fake.execute("slow", undefined, undefined, { signal: cancel.signal });
  await new Promise((go) => setTimeout(go, 50));
  cancel.abort(new Error("replaced"));
  await assert.rejects(run, /replaced/);
  await eventually(() => reasons.length === 1);
  assert.ok(reasons[0] instanceof Cancelled);
  assert.match(reasons[0].message, /replaced/);
  assert.equal(resultOf(await fake.execute("report")), "done");
  assert.deepEqual(fake.stream.primary.ignored, []);
});

test("an attempt is cancelled at its deadline", async (t) => {
  const { app, fake } = await beside(t, "stream");
  app.schedule("slow", (context) => context.sleep(60_000));
  await fake.lead();
  const late = fake.execute("slow", undefined, undefined, { timeoutMs: 200 });
  await assert.rejects(late, { code: status.DEADLINE_EXCEEDED });
});

test("G1: a broken stream ends terms and attempts, and another one is opened", async (t) => {
  const { app, fake } = await beside(t, "stream");
  const acts: string[] = [];
  app.singleton("coordinator", async (context) => {
    acts.push("started");
    await context.sleep(60_000).catch(() => acts.push("stopped"));
  });
  app.onLoseLeadership((_, reason) => acts.push(reason));
  await fake.lead();
  const run = assert.rejects(fake.execute("coordinator", undefined, RunKind.SINGLETON));
  await eventually(() => acts.length === 1);
  fake.kill();
  await run;
  await eventually(() => acts.length === 3);
  assert.deepEqual(acts, ["started", "stopped", "LEASE_LOST"]);
  assert.equal(app.isLeader(), false);
  await fake.listen();
  await eventually(() => app.attached && fake.stream.open.length === 1);
  await fake.lead();
  assert.ok(app.isLeader());
});

test("an app that attaches before its sidecar is there attaches later", async (t) => {
  const { app, fake, lines } = await apart(t);
  fake.kill();
  app.attach({ sidecar: fake.address });
  await new Promise((go) => setTimeout(go, 500));
  assert.equal(app.attached, false);
  await fake.listen();
  await eventually(() => app.attached);
  assert.ok(lines.some((line) => line.startsWith("not attached: Unavailable")));
});

test("a refusal is logged once, with what to do, until it changes", async (t) => {
  const { app, fake, lines } = await apart(t);
  fake.stream.refusal = new Refused(status.INVALID_ARGUMENT);
  app.attach({ sidecar: fake.address });
  await eventually(() => fake.stream.opened === 2);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /INVALID_ARGUMENT.*declares/);
  fake.stream.refusal = new Refused(status.UNAUTHENTICATED);
  await eventually(() => lines.length === 2);
  assert.match(lines[1] ?? "", /BATON_API_TOKEN_FILE/);
  fake.stream.refusal = undefined;
  await eventually(() => app.attached);
});

test("an older sidecar is named as one", async (t) => {
  const { app, fake, lines } = await apart(t);
  fake.kill();
  fake.hasStream = false;
  await fake.listen();
  app.attach({ sidecar: fake.address });
  await eventually(() => lines.length > 0);
  assert.match(lines[0] ?? "", /upgrade the sidecar, or serve this app with app\.serve\(\)/);
});

test("G12: the stream carries the token of the API", async (t) => {
  const path = join(await directory(t), "token");
  writeFileSync(path, "secret");
  const fake = await FakeSidecar.start("127.0.0.1:0", "secret");
  const app = new Baton();
  t.after(async () => {
    await app.close();
    fake.close();
  });
  app.attach({ sidecar: fake.address, apiTokenFile: path });
  await eventually(() => app.attached);
});

test("draining sends capacity 0, resigns, and waits for handlers", async (t) => {
  const { app, fake } = await beside(t, "stream");
  const reasons: string[] = [];
  app.schedule("slow", async (context) => {
    await new Promise((go) => setTimeout(go, 400));
    return context.signal.aborted ? "cancelled" : "finished";
  });
  app.onLoseLeadership((_, reason) => reasons.push(reason));
  await fake.lead();
  const { primary } = fake.stream;
  const run = fake.execute("slow");
  await new Promise((go) => setTimeout(go, 50));
  await app.drain();
  assert.equal(resultOf(await run), "finished");
  assert.deepEqual([primary.capacity, primary.ended], [0, false]);
  assert.deepEqual(reasons, ["RESIGNED"]);
  await app.close();
  assert.ok(primary.ended);
});

test("an app that stops while it leads loses its term as shut down", async (t) => {
  const { app, fake } = await beside(t, "stream");
  const reasons: string[] = [];
  app.onLoseLeadership((_, reason) => reasons.push(reason));
  await fake.lead();
  await app.close();
  assert.deepEqual(reasons, ["SHUTDOWN"]);
  await eventually(() => fake.stream.open.length === 0);
});

test("what could not finish is handed back before the stream ends", async (t) => {
  const { app, fake } = await beside(t, "stream");
  app.schedule("slow", (context) => context.sleep(60_000));
  await fake.lead();
  const run = assert.rejects(fake.execute("slow"), {
    code: status.UNAVAILABLE,
    message: "the attempt was ended",
  });
  await new Promise((go) => setTimeout(go, 50));
  await app.close();
  await run;
});

test("answers are gathered into messages of a bounded size", async (t) => {
  const { app, fake } = await beside(t, "stream");
  fake.stream.welcome.frameEntriesMax = 16;
  fake.kill();
  await fake.listen();
  await eventually(() => app.attached && fake.stream.open.length === 1);
  app.schedule("tiny", () => 1);
  app.schedule("large", () => "x".repeat(200_000));
  await fake.lead();
  const { primary } = fake.stream;
  await Promise.all(Array.from({ length: 200 }, () => fake.execute("tiny")));
  const answered = () => primary.frames.reduce((sum, entries) => sum + entries, 0);
  assert.equal(answered(), 200);
  assert.ok(Math.max(...primary.frames) <= 16);
  assert.ok(primary.frames.length < 150, `${primary.frames.length} messages for 200 answers`);
  const before = primary.frames.length;
  await Promise.all(Array.from({ length: 20 }, () => fake.execute("large")));
  assert.ok(Math.max(...primary.frames.slice(before)) <= 5); // 1 MiB
});

test("an answer that is too large fails its run for good", async (t) => {
  const { app, fake } = await beside(t, "stream");
  app.schedule("huge", () => new Uint8Array(5 * 1024 * 1024));
  await fake.lead();
  const { outcome } = await fake.execute("huge");
  assert.ok(outcome.case === "failed");
  const { code, retryable, message } = outcome.value;
  assert.deepEqual([code, retryable], ["TOO_LARGE", false]);
  assert.match(message, /^the answer has \d+ bytes; the sidecar accepts 4194304$/);
});

test("a run that is delivered twice is executed once", async (t) => {
  const { app, fake } = await beside(t, "stream");
  let started = 0;
  app.schedule("slow", async () => {
    started += 1;
    await new Promise((go) => setTimeout(go, 100));
  });
  await fake.lead();
  const run = fake.execute("slow");
  const { epoch } = fake;
  const again = { runId: 1n, attempt: 1, name: "slow", kind: RunKind.SCHEDULE };
  fake.stream.primary.send({ runs: [{ ...again, context: { group: "default", epoch } }] });
  await run;
  assert.equal(started, 1);
});

test("a sidecar that falls silent is left", async (t) => {
  const { app, fake } = await apart(t);
  fake.stream.welcome.healthInterval = durationFromMs(10);
  app.attach({ sidecar: fake.address });
  await fake.useStream();
  const { primary } = fake.stream;
  await eventually(() => primary.ended, 30_000);
  await eventually(() => fake.stream.open.length === 1);
});
