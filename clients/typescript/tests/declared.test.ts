/** Schedules and singletons declared in code. */
import assert from "node:assert/strict";
import test from "node:test";
import { create, toJson } from "@bufbuild/protobuf";
import { HelloSchema } from "../src/gen/baton/v1/stream_pb.js";
import { Handlers } from "../src/handlers.js";
import { helloOf, revisionOf } from "../src/hello.js";
import { Baton } from "../src/index.js";
import { eventually, quietApp } from "./beside.js";
import { FakeSidecar } from "./fake/sidecar.js";

const nothing = () => undefined;

/** What an app says of itself, as JSON. */
async function helloFrom(t: test.TestContext, app: Baton): Promise<Record<string, unknown>> {
  const fake = await FakeSidecar.start();
  t.after(async () => {
    await app.close();
    fake.close();
  });
  app.attach({ sidecar: fake.address });
  await eventually(() => fake.stream.open[0]?.hello);
  return toJson(HelloSchema, fake.stream.primary.hello ?? create(HelloSchema)) as never;
}

test("hello carries every key of a declared schedule", async (t) => {
  const app = quietApp();
  app.schedule(
    "cleanup",
    {
      ...{ cron: "0 2 * * *", timezone: "Europe/Berlin", group: "reports", enabled: true },
      ...{ payload: { days: 30 }, contentType: "application/json" },
      ...{ startAt: new Date("2027-01-01T00:00:00Z"), endAt: new Date("2028-01-01T00:00:00Z") },
      ...{ expectedIntervalMs: 90_000, skipIfOlderThanMs: 60_000, catchUp: "all", catchUpMax: 5 },
      ...{ overlap: "skip", retry: { attempts: 5, initialMs: 500, maxMs: 9000 } },
      ...{ timeoutMs: 1500, jitterMs: 2000, pingUrl: "https://example.org/ping" },
      state: { version: 2, initial: { runs: 0 }, schema: { type: "object" }, ttlMs: 60_000 },
    },
    nothing,
  );
  app.schedule("often", { everyMs: 30_000 }, nothing);
  app.schedule("once", { at: new Date("2027-01-01T00:00:00Z") }, nothing);
  app.schedule("elsewhere", nothing);
  const hello = await helloFrom(t, app);
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
  assert.deepEqual(hello.schedules, ["cleanup", "often", "once", "elsewhere"]);
  assert.deepEqual(hello.declaredSchedules, [
    {
      ...{ name: "cleanup", cron: "0 2 * * *", timezone: "Europe/Berlin", group: "reports" },
      ...{ enabled: true, payload: base64({ days: 30 }), contentType: "application/json" },
      ...{ startAt: "2027-01-01T00:00:00Z", endAt: "2028-01-01T00:00:00Z" },
      ...{ expectedInterval: "90s", skipIfOlderThan: "60s", catchUp: "CATCH_UP_ALL" },
      ...{ catchUpMax: 5, overlap: "OVERLAP_SKIP" },
      retry: { attempts: 5, initial: "0.500s", max: "9s" },
      ...{ timeout: "1.500s", jitter: "2s", pingUrl: "https://example.org/ping" },
      state: {
        ...{ version: 2, initial: base64({ runs: 0 }), schema: base64({ type: "object" }) },
        ttl: "60s",
      },
    },
    { name: "often", every: "30s" },
    { name: "once", at: "2027-01-01T00:00:00Z" },
  ]);
});

test("hello carries declared singletons and the revision", async (t) => {
  const app = new Baton({ revision: 42 });
  const options = {
    group: "g",
    expectedIntervalMs: 5000,
    restartAfterMs: 100,
    state: { version: 3 },
  };
  app.singleton("coordinator", options, nothing).singleton("elsewhere", nothing);
  const hello = await helloFrom(t, app);
  assert.equal(hello.revision, "42");
  assert.deepEqual(hello.singletons, ["coordinator", "elsewhere"]);
  assert.deepEqual(hello.declaredSingletons, [
    {
      ...{ name: "coordinator", group: "g", expectedInterval: "5s", restartAfter: "0.100s" },
      state: { version: 3 },
    },
  ]);
});

test("a declaration that cannot be right is an error at once, and registers nothing", () => {
  const app = quietApp();
  const wrong = [{}, { cron: "@daily", everyMs: 5 }, { everyMs: 5, overlap: "never" }];
  for (const options of wrong) {
    assert.throws(() => app.schedule("cleanup", options as never, nothing), TypeError);
  }
  app.schedule("cleanup", { everyMs: 5 }, nothing);
});

test("the revision comes from the option, else from the environment", (t) => {
  process.env.BATON_REVISION = "17";
  t.after(() => {
    delete process.env.BATON_REVISION;
  });
  assert.deepEqual([revisionOf(undefined), revisionOf(3)], [17n, 3n]);
  assert.throws(() => new Baton({ revision: -1 }), RangeError);
  process.env.BATON_REVISION = "v17";
  assert.throws(() => new Baton(), RangeError);
  assert.equal(helloOf(new Handlers(), {}, 5n).revision, 5n);
});
