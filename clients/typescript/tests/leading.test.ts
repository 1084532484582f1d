/** Hooks, epochs and the trust time. */
import assert from "node:assert/strict";
import plainTest from "node:test";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import { boottime, IS_BOOTTIME } from "../src/clock.js";
import { LossReason } from "../src/gen/baton/v1/callback_pb.js";
import { LeaderSchema } from "../src/gen/baton/v1/leadership_pb.js";
import { RunKind } from "../src/gen/baton/v1/runs_pb.js";
import { clusterContext } from "../src/index.js";
import { clusterContextOf } from "../src/scope.js";
import { Term } from "../src/terms.js";
import { eventually, quietApp, resultOf, testBoth as test } from "./beside.js";
import type { FakeSidecar } from "./fake/sidecar.js";

/** Calls the app with messages that the fake itself would never send. */
function teller(fake: FakeSidecar) {
  const context = (epoch: bigint) => ({ ...fake.context(), epoch });
  return {
    became: (epoch: bigint, trustedMs = 3000) =>
      fake.transport.become({
        context: context(epoch),
        trustedFor: durationFromMs(trustedMs),
      }),
    lost: (epoch: bigint) =>
      fake.transport.lose({ context: context(epoch), reason: LossReason.SHUTDOWN }),
  };
}

test("G1: a term opens and closes with its hooks", async (t, beside) => {
  const { app, fake } = await beside(t);
  const told: unknown[] = [];
  app.onBecomeLeader(({ epoch }) => told.push(["become", epoch, app.isLeader()]));
  app.onLoseLeadership((context, reason) => {
    assert.deepEqual(clusterContext(), context);
    told.push([reason, context.epoch, app.isLeader()]);
  });
  assert.equal(app.isLeader(), false);
  const epoch = await fake.lead();
  assert.equal(app.epoch(), epoch);
  assert.equal(app.isLeader("reports"), false);
  await fake.lose();
  assert.equal(app.epoch(), undefined);
  assert.deepEqual(told, [
    ["become", epoch, true],
    ["LEASE_LOST", epoch, false],
  ]);
});

test("G1: messages of lost terms are ignored", async (t, beside) => {
  const { app, fake } = await beside(t);
  const { became, lost } = teller(fake);
  const begun: bigint[] = [];
  app.onBecomeLeader(({ epoch }) => begun.push(epoch));
  await became(7n);
  await lost(7n);
  await became(7n);
  await became(6n);
  assert.equal(app.isLeader(), false);
  await lost(9n); // of a term never known here
  await became(8n);
  assert.equal(app.isLeader(), false);
  await became(10n);
  assert.deepEqual(begun, [7n, 10n]);
});

test("an old loss leaves a newer term alone; epoch 0 ends any", async (t, beside) => {
  const { app, fake } = await beside(t);
  const { became, lost } = teller(fake);
  const losses: bigint[] = [];
  app.onLoseLeadership(({ epoch }) => losses.push(epoch));
  await became(7n);
  await lost(6n);
  assert.deepEqual(losses, []);
  await lost(0n);
  await lost(0n);
  assert.deepEqual(losses, [7n]);
  await became(7n);
  assert.equal(app.isLeader(), false);
  await became(8n);
  assert.deepEqual(losses, [7n]);
});

test("a newer term ends the one whose loss was never told", async (t, beside) => {
  const { app, fake } = await beside(t);
  const { became } = teller(fake);
  const told: string[] = [];
  app.onBecomeLeader(({ epoch }) => told.push(`become ${epoch}`));
  app.onLoseLeadership(({ epoch }) => told.push(`lose ${epoch}`));
  await became(7n);
  await became(8n);
  assert.deepEqual(told, ["become 7", "lose 7", "become 8"]);
});

test("G1: without renewal trust ends, and what runs is told to stop", async (t, beside) => {
  const { app, fake } = await beside(t);
  let stopped = false;
  app.singleton("coordinator", async (context) => {
    await context.sleep(60_000).finally(() => (stopped = true));
  });
  fake.renews = false;
  const askedAt = boottime();
  await fake.lead("default", 1000);
  const toldAt = boottime();
  const run = fake.execute("coordinator", undefined, RunKind.SINGLETON);
  const refused = assert.rejects(run, { code: status.UNAVAILABLE });
  for (let now = boottime(); app.isLeader(); now = boottime()) {
    assert.ok(now - toldAt < 1000, "it was leader past its trust");
    assert.equal(stopped, false);
    await new Promise((go) => setTimeout(go, 5));
  }
  assert.ok(boottime() - askedAt > 900, "it was leader for its trust");
  await refused;
  assert.ok(stopped);
  const again = fake.execute("coordinator", undefined, RunKind.SINGLETON);
  await assert.rejects(again, { code: status.UNAVAILABLE });
});

test("G1: the watch renews trust", async (t, beside) => {
  const { app, fake } = await beside(t);
  await fake.lead("default", 700);
  for (let round = 0; round < 20; round++) {
    await new Promise((go) => setTimeout(go, 100));
    assert.ok(app.isLeader());
  }
});

test("G1: the earlier of the two ends of trust counts", async (t, beside) => {
  if (!IS_BOOTTIME) return;
  const { app, fake } = await beside(t);
  await fake.transport.become({
    context: fake.context(),
    trustedFor: durationFromMs(60_000),
    trustedUntilBoottime: durationFromMs(1000), // long ago
  });
  assert.equal(app.isLeader(), false);
});

plainTest("G1: only the newest message counts, and only of this very term", () => {
  let now = 1000;
  const context = clusterContextOf(undefined);
  const term = new Term({ ...context, epoch: 7n }, 4000, () => now);
  const heard = (epoch: bigint, trustedMs: number, isLeader = true) => {
    const trustedFor = durationFromMs(trustedMs);
    term.hear(create(LeaderSchema, { isLeader, epoch, trustedFor }), now);
  };
  assert.ok(term.leads());
  now = 3990; // the clock is cut off to 10 ms, so the truth may be 4000 already
  assert.equal(term.leads(), false);
  heard(7n, 100);
  assert.ok(term.leads());
  heard(7n, 10);
  assert.equal(term.leads(), false);
  heard(7n, 5000);
  heard(8n, 5000);
  assert.equal(term.leads(), false);
  heard(7n, 5000);
  heard(7n, 5000, false);
  assert.equal(term.leads(), false);
  heard(7n, 5000);
  term.end();
  assert.equal(term.leads(), false);
});

test("a failing become hook refuses the term, and tells no secret", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.onBecomeLeader(() => {
    throw new RangeError("password=hunter2");
  });
  await assert.rejects(fake.lead(), { code: status.INTERNAL, message: "hook failed: RangeError" });
  assert.equal(app.isLeader(), false);
  await fake.lose();
});

test("a failing lose hook is told, but does not lock the app out", async (t, beside) => {
  const { app, fake } = await beside(t);
  const { became, lost } = teller(fake);
  app.onLoseLeadership(() => {
    throw new RangeError("password=hunter2");
  });
  await became(7n);
  for (let asked = 0; asked < 2; asked++) {
    await assert.rejects(lost(7n), { code: status.INTERNAL, message: "hook failed" });
  }
  await lost(0n); // a sidecar makes contact again
});

test("a become hook learns that its term is over, and is waited for", async (t, beside) => {
  const { app, fake } = await beside(t);
  const told: string[] = [];
  app.onBecomeLeader(async (_, signal) => {
    told.push("begun");
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => {
        resolve();
      });
    });
    told.push("stopped");
  });
  app.onLoseLeadership(() => told.push("lost"));
  const leading = fake.lead();
  await eventually(() => told.length);
  await fake.lose();
  assert.deepEqual(told, ["begun", "stopped", "lost"]);
  await leading;
  assert.equal(app.isLeader(), false);
});

test("G1: losing is answered only when handlers have stopped", async (t, beside) => {
  const { app, fake } = await beside(t);
  const acts: string[] = [];
  app.singleton("coordinator", async (context) => {
    acts.push("begun");
    await context.sleep(60_000).catch(() => undefined);
    await new Promise((go) => setTimeout(go, 200));
    acts.push("stopped");
  });
  app.onLoseLeadership(() => acts.push("hook"));
  await fake.lead();
  const run = fake.execute("coordinator", undefined, RunKind.SINGLETON);
  const refused = assert.rejects(run, { code: status.UNAVAILABLE });
  await eventually(() => acts.length);
  await fake.lose();
  assert.deepEqual(acts, ["begun", "stopped", "hook"]);
  await refused;
});

test("handlers learn that a hand-over has begun", async (t, beside) => {
  const { app, fake } = await beside(t);
  let begun = false;
  app.schedule("report", async ({ draining }) => {
    begun = true;
    assert.equal(draining.aborted, false);
    await eventually(() => draining.aborted);
  });
  await fake.lead();
  const run = fake.execute("report");
  await eventually(() => begun);
  fake.drain();
  assert.equal((await run).outcome.case, "succeeded");
});

test("two groups are led apart", async (t, beside) => {
  const { app, fake } = await beside(t);
  const losses: string[] = [];
  app.onLoseLeadership(({ group }) => losses.push(group), "reports");
  await fake.lead();
  await fake.lead("reports");
  await fake.lose(LossReason.STALE, "reports");
  assert.deepEqual(losses, ["reports"]);
  assert.equal(app.isLeader("reports"), false);
});

plainTest("names are registered once", () => {
  const app = quietApp();
  app.schedule("report", () => undefined).singleton("report", () => undefined);
  assert.throws(() => app.schedule("report", () => undefined), /registered already/);
  app.onBecomeLeader(() => undefined);
  assert.throws(() => app.onBecomeLeader(() => undefined), /registered already/);
});

test("G1: when trust expires the loss hook runs once, and a later loss is answered", async (t, beside) => {
  const { app, fake } = await beside(t);
  const { became, lost } = teller(fake);
  const losses: unknown[] = [];
  app.onLoseLeadership(({ epoch, isLeader }, reason) => losses.push([epoch, isLeader, reason]));
  fake.renews = false;
  await became(7n, 300);
  await eventually(() => losses.length);
  assert.deepEqual(losses, [[7n, false, "LEASE_LOST"]]);
  assert.equal(app.isLeader(), false);
  await lost(7n);
  await lost(0n);
  assert.equal(losses.length, 1);
  await became(8n);
  assert.ok(app.isLeader());
});

test("a term whose trust expires during the become hook is refused", async (t, beside) => {
  const { app, fake } = await beside(t);
  app.onBecomeLeader(async (_, signal) => {
    await eventually(() => signal.aborted);
  });
  fake.renews = false;
  await assert.rejects(teller(fake).became(7n, 300), { code: status.UNAVAILABLE });
});

test("a sidecar that still counts on an expired term is asked to hand it over", async (t, beside) => {
  const { app, fake } = await beside(t);
  const losses: string[] = [];
  app.schedule("report", () => "done");
  app.onLoseLeadership((_, reason) => losses.push(reason));
  fake.renews = false;
  await fake.lead("default", 300);
  await eventually(() => losses.length);
  await assert.rejects(fake.execute("report"), { code: status.UNAVAILABLE });
  await eventually(() => !fake.leads);
  await fake.handOver;
  fake.renews = true;
  await fake.lead("default", 3000);
  assert.equal(resultOf(await fake.execute("report")), "done");
});
