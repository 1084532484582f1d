/** Errors, repetition, tokens and addresses, on the wire. */
import assert from "node:assert/strict";
import { existsSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import test from "node:test";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Metadata, status } from "@grpc/grpc-js";
import { Connection } from "../src/connection.js";
import { AppCallback } from "../src/gen/baton/v1/callback_pb.js";
import { State } from "../src/gen/baton/v1/state_pb.js";
import { BadRequestSchema, RetryInfoSchema } from "../src/gen/google/rpc/details_pb.js";
import { Health, HealthCheckResponse_ServingStatus } from "../src/gen/grpc/health/v1/health_pb.js";
import * as baton from "../src/index.js";
import { statusDetails } from "../src/status.js";
import { TokenFile } from "../src/tokens.js";
import { beside, directory, eventually, quietApp } from "./beside.js";
import { Refused } from "./fake/serving.js";
import { FakeSidecar } from "./fake/sidecar.js";

const AWAY = new Refused(status.UNAVAILABLE);

test("reads are asked again while the sidecar is away, writes are not", async (t) => {
  const { app, fake } = await beside(t);
  const init = { retryDelay: durationFromMs(300) };
  const later = new Refused(status.UNAVAILABLE, [{ schema: RetryInfoSchema, init }]);
  fake.refusals.push(AWAY, later);
  const begun = performance.now();
  assert.equal(await app.state.has("a"), false);
  assert.equal(fake.calls, 3);
  assert.ok(performance.now() - begun > 300);
  fake.refusals.push(AWAY);
  await assert.rejects(app.state.delete("a"), baton.Unavailable);
  assert.equal(fake.calls, 4);
});

for (const [reason, retryable] of [
  ["StateLoadFailed", true],
  ["StatePersistFailed", true],
  ["SchemaDecodeFailed", false],
  ["HeartbeatFailed", true],
  ["LeaderHandoffFailed", false], // whatever the class says, the sidecar knows better
] as const) {
  test(`${reason} is an error of its own`, async (t) => {
    const { app, fake } = await beside(t);
    fake.refusals.push(Refused.because(status.INTERNAL, reason, retryable));
    const error = await app.state.has("a").catch((found: unknown) => found);
    assert.ok(error instanceof baton[reason]);
    assert.deepEqual(
      [error.name, error.reason, error.retryable, error.code],
      [reason, reason, retryable, status.INTERNAL],
    );
  });
}

test("codes become typed errors", async (t) => {
  const { app, fake } = await beside(t);
  const init = { fieldViolations: [{ field: "key", description: "too long" }] };
  fake.refusals.push(
    new Refused(status.INVALID_ARGUMENT, [{ schema: BadRequestSchema, init }]),
    new Refused(status.RESOURCE_EXHAUSTED),
    new Refused(status.OUT_OF_RANGE),
    new Refused(status.INTERNAL),
  );
  const violations = [{ field: "key", description: "too long" }];
  await assert.rejects(app.state.has("a"), { name: "InvalidArgument", violations });
  await assert.rejects(app.state.has("a"), baton.LimitExceeded);
  await assert.rejects(app.state.has("a"), baton.OutOfRange);
  await assert.rejects(app.state.has("a"), { name: "BatonError", code: status.INTERNAL });
});

test("damaged details are no second error", () => {
  for (const damaged of ["ff", "1a7f", "1a0212", "07", "1a80"]) {
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from(damaged, "hex"));
    assert.deepEqual(statusDetails(metadata), {});
  }
});

test("a sidecar that stays away is said so in time", async () => {
  const connection = new Connection();
  connection.open("127.0.0.1:1", undefined);
  const begun = performance.now();
  const asked = connection.call(State.method.has, { key: "a" }, { timeoutMs: 500 });
  await assert.rejects(asked, { retryable: true });
  assert.ok(performance.now() - begun < 1000);
  connection.shut();
});

test("calls end with their signal, and with the connection", async (t) => {
  const { app, fake } = await beside(t);
  const reason = new Error("enough");
  const before = fake.calls;
  await assert.rejects(app.state.has("a", { signal: AbortSignal.abort(reason) }), reason);
  assert.equal(fake.calls, before);
  const script = new baton.Sidecar().connect({ sidecar: fake.address });
  const deferred = await script.deferreds.create("never");
  const waiting = assert.rejects(deferred.value(), baton.NotConnected);
  const watching = assert.rejects(script.state.watch().next(), baton.NotConnected);
  await new Promise((go) => setTimeout(go, 50));
  await script.close();
  await waiting;
  await watching;
});

test("G12: tokens are checked both ways; health needs none", async (t) => {
  const home = await directory(t);
  const [appTokenFile, apiTokenFile, wrong] = ["app", "api", "wrong"].map((name) => {
    const path = join(home, name);
    writeFileSync(path, `${name}-secret\n`);
    return path;
  });
  const fake = await FakeSidecar.start("127.0.0.1:0", "api-secret");
  const app = quietApp();
  const options = { address: "127.0.0.1:0", sidecar: fake.address, appTokenFile, apiTokenFile };
  const address = await app.start(options);
  t.after(async () => {
    fake.close();
    await app.close();
  });
  fake.callAppAt(address, appTokenFile);
  await fake.lead();
  for (const tokenFile of [wrong, undefined]) {
    const stranger = new FakeSidecar();
    stranger.callAppAt(address, tokenFile);
    await assert.rejects(stranger.lose(), { code: status.UNAUTHENTICATED });
    for (const service of ["", AppCallback.typeName]) {
      const answer = await stranger.app.call(Health.method.check, { service });
      assert.equal(answer.status, HealthCheckResponse_ServingStatus.SERVING);
    }
    const unknown = stranger.app.call(Health.method.check, { service: "other" });
    await assert.rejects(unknown, { code: status.NOT_FOUND });
    stranger.close();
  }
  assert.ok(app.isLeader());
  await app.leadership.get();
  writeFileSync(apiTokenFile ?? "", "wrong now");
  await assert.rejects(app.leadership.get(), baton.Unauthenticated);
});

test("health is watched until the app stops", async (t) => {
  const { app, fake } = await beside(t);
  const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;
  const { watch } = Health.method;
  const other = fake.app.stream(watch, { service: "other" });
  assert.equal((await other.next()).value.status, SERVICE_UNKNOWN);
  const health = fake.app.stream(watch, { service: AppCallback.typeName });
  assert.equal((await health.next()).value.status, SERVING);
  const [last] = await Promise.all([health.next(), app.close()]);
  assert.equal(last.value.status, NOT_SERVING);
});

test("a token file is read again when it changes", async (t) => {
  const path = join(await directory(t), "token");
  writeFileSync(path, "one\n");
  let now = 0;
  const token = new TokenFile(path, () => now);
  assert.ok(token.accepts("one"));
  for (const wrong of ["two", "", "one "]) assert.equal(token.accepts(wrong), false);
  writeFileSync(`${path}.new`, "two");
  renameSync(`${path}.new`, path);
  assert.ok(token.accepts("two"));
  assert.ok(token.accepts("one"));
  now = 61_000;
  assert.equal(token.accepts("one"), false);
  rmSync(path);
  assert.equal(token.current(), "two");
  for (const unusable of ["", "tökén", "three\nfour"]) {
    writeFileSync(path, unusable);
    assert.equal(token.current(), "two");
    assert.ok(token.accepts("two"));
    assert.equal(token.accepts(unusable), false);
  }
});

test("G12: an empty or missing token file stops the start", async (t) => {
  const home = await directory(t);
  writeFileSync(join(home, "empty"), "\n");
  const app = quietApp();
  const start = (name: string) =>
    app.start({ address: "127.0.0.1:0", appTokenFile: join(home, name) });
  await assert.rejects(start("empty"), /is empty/);
  await assert.rejects(start("missing"), { code: "ENOENT" });
  await assert.rejects(app.start({ address: "127.0.0.1:0", apiTokenFile: join(home, "missing") }), {
    code: "ENOENT",
  });
});

test("addresses come from the environment, and may be socket files", async (t) => {
  const home = await directory(t);
  const [appSocket, apiSocket] = ["app", "api"].map((name) => `unix://${home}/${name}.sock`);
  const fake = await FakeSidecar.start(apiSocket);
  Object.assign(process.env, { BATON_APP_ADDRESS: appSocket, BATON_API_ADDRESS: apiSocket });
  t.after(() => {
    delete process.env.BATON_APP_ADDRESS;
    delete process.env.BATON_API_ADDRESS;
    fake.close();
  });
  const app = quietApp();
  app.schedule("report", () => app.state.has("a"));
  assert.equal(await app.start(), appSocket);
  assert.equal(statSync(join(home, "app.sock")).mode & 0o777, 0o660);
  fake.callAppAt(appSocket ?? "");
  await fake.lead();
  assert.equal((await fake.execute("report")).outcome.case, "succeeded");
  await app.close();
});

test("the socket file of a killed app is in nobody's way", async (t) => {
  const path = join(await directory(t), "app.sock");
  const killed = createServer().listen(path);
  await eventually(() => existsSync(path));
  const address = `unix://${path}`;
  await assert.rejects(quietApp().start({ address, sidecar: "127.0.0.1:1" }), /./);
  renameSync(path, `${path}.kept`); // closing removes the file, being killed does not
  await new Promise((go) => killed.close(go));
  renameSync(`${path}.kept`, path);
  const app = quietApp();
  assert.equal(await app.start({ address, sidecar: "127.0.0.1:1" }), address);
  await app.close();
});

test("two apps never share a port, and one that failed to start may start again", async (t) => {
  const { app, fake } = await beside(t);
  const taken = fake.address;
  const other = quietApp();
  await assert.rejects(other.start({ address: taken, sidecar: taken }), /EADDRINUSE|bind/i);
  await other.start({ address: "127.0.0.1:0", sidecar: taken });
  await other.close();
  assert.equal(app.isLeader(), false);
});

test("the trace goes on with calls to the sidecar", async (t) => {
  const { app, fake } = await beside(t);
  app.schedule("report", async () => {
    await app.state.has("a");
  });
  await fake.lead();
  fake.traceparent = "00-1-2-01";
  await fake.execute("report");
  assert.deepEqual(fake.metadata.get("traceparent"), ["00-1-2-01"]);
  await app.state.has("a");
  assert.deepEqual(fake.metadata.get("traceparent"), []);
});
