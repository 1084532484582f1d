/** The sidecar's services as the client offers them. */
import assert from "node:assert/strict";
import test from "node:test";
import { status } from "@grpc/grpc-js";
import {
  AlreadyExists,
  BatonError,
  type Codec,
  Conflict,
  FailedPrecondition,
  NotConnected,
  NotFound,
  SchemaDecodeFailed,
  Sidecar,
} from "../src/index.js";
import { beside, eventually, gathered } from "./beside.js";
import { Refused } from "./fake/serving.js";

test("state: what is written is read, listed, counted, cleared and deleted", async (t) => {
  const { app } = await beside(t);
  const state = app.state.as<number>();
  assert.equal(await state.get("a"), undefined);
  const first = await state.put("a", 1, { expectedVersion: 0n });
  await assert.rejects(state.put("a", 2, { expectedVersion: 0n }), Conflict);
  const second = await state.put("a", 2, { expectedVersion: first.version });
  assert.ok(second.version > first.version);
  assert.deepEqual((await state.get("a", { strong: true }))?.value, 2);
  for (let number = 0; number < 5; number++) await state.put(`many/${number}`, number);
  const listed = await gathered(state.list("many/"));
  assert.deepEqual(
    listed.map(({ value }) => value),
    [0, 1, 2, 3, 4],
  );
  assert.equal(await state.size("many/"), 5n);
  assert.equal(await state.clear("many/"), 5n);
  assert.ok(await state.has("a"));
  await assert.rejects(state.delete("a", { expectedVersion: first.version }), Conflict);
  assert.ok(await state.delete("a"));
  assert.equal(await state.delete("a"), false);
});

test("state: a codec decides what fits", async (t) => {
  const { app } = await beside(t);
  const dates: Codec<Date> = {
    encode: (date) => new TextEncoder().encode(date.toISOString()),
    decode: (bytes) => {
      const date = new Date(new TextDecoder().decode(bytes));
      if (Number.isNaN(date.getTime())) throw new RangeError("no date");
      return date;
    },
  };
  const day = new Date(0);
  await app.state.as(dates).put("day", day);
  assert.deepEqual((await app.state.as(dates).get("day"))?.value, day);
  await app.state.put("day", Uint8Array.of(255));
  const entry = await app.state.get("day");
  assert.throws(() => entry?.value, SchemaDecodeFailed);
  assert.deepEqual(entry?.raw, Uint8Array.of(255));
  const misfit = await app.state.as(dates).get("day");
  assert.throws(() => misfit?.value, SchemaDecodeFailed);
});

test("G7: modify loses no change", async (t) => {
  const { app } = await beside(t);
  const counts = app.state.as<number>();
  const increase = () => counts.modify("count", (before = 0) => before + 1);
  await Promise.all(Array.from({ length: 20 }, increase));
  assert.equal((await counts.get("count"))?.value, 20);
});

test("state: a watch goes on after a break, and ends with its signal", async (t) => {
  const { app, fake } = await beside(t);
  const { version } = await app.state.put("a/begin", 0);
  const end = new AbortController();
  const changes = app.state.watch("a/", { afterVersion: version, signal: end.signal });
  await app.state.put("a/x", 1);
  await app.state.put("b/x", 1);
  const first = await changes.next();
  assert.deepEqual([first.value.entry.key, first.value.deleted], ["a/x", false]);
  fake.kill();
  await fake.listen();
  const second = changes.next();
  await eventually(() => app.state.delete("a/x").catch(() => false));
  const { deleted, entry } = (await second).value;
  assert.deepEqual([entry.key, deleted], ["a/x", true]);
  assert.ok(entry.version > first.value.entry.version);
  const third = changes.next();
  end.abort(new Error("enough"));
  await assert.rejects(third, /enough/);
});

test("state: owned keys are written by their run only", async (t) => {
  const { app } = await beside(t);
  await assert.rejects(app.state.put("schedule-state:report", 1), FailedPrecondition);
});

test("schedules: made, read, paused, triggered, previewed", async (t) => {
  const { app } = await beside(t);
  const made = await app.schedules.create({ name: "report", everyMs: 300_000, payload: { a: 1 } });
  assert.deepEqual(made.timing.case, "every");
  assert.equal(new TextDecoder().decode(made.payload), '{"a":1}');
  await assert.rejects(app.schedules.create({ name: "report", cron: "@daily" }), AlreadyExists);
  await app.schedules.create({ name: "daily", cron: "0 2 * * *", timezone: "Europe/Berlin" });
  assert.equal((await app.schedules.get("daily")).timezone, "Europe/Berlin");
  assert.equal((await app.schedules.pause("daily", "not now")).pauseNote, "not now");
  const names = (await gathered(app.schedules.list())).map(({ name }) => name);
  assert.deepEqual(names, ["report", "daily"]);
  assert.equal(await app.schedules.trigger("report", { by: "hand" }), 13n); // bytes of payload
  assert.equal(await app.schedules.trigger("report"), 0n);
  const after = new Date("2026-01-01T00:00:00Z");
  const at = new Date("2027-01-01T00:00:00Z");
  assert.deepEqual(await app.schedules.preview({ name: "once", at }, { n: 1, after }), [after]);
  const range = { from: new Date(1000), to: new Date(2000) };
  assert.deepEqual(await app.schedules.backfill("report", range), [1n, 2n]);
  assert.equal((await app.schedules.resume("daily")).paused, false);
  await app.schedules.update({ name: "daily", at });
  assert.equal((await app.schedules.get("daily")).timing.case, "at");
  await app.schedules.delete("daily");
  await assert.rejects(app.schedules.get("daily"), NotFound);
});

test("ids rise, and are asked for by the block", async (t) => {
  const { app, fake } = await beside(t);
  const ids = await Promise.all(Array.from({ length: 150 }, () => app.nextId()));
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => Number(a - b)),
  );
  assert.equal(new Set(ids).size, 150);
  assert.equal(fake.calls, 2);
});

test("old ids are not given out while there are no new ones", async (t) => {
  const { app, fake } = await beside(t);
  await app.nextId();
  await new Promise((go) => setTimeout(go, 1100)); // an id tells when it was made
  for (let asked = 0; asked < 2; asked++) {
    fake.refusals.push(new Refused(status.INTERNAL));
    await assert.rejects(app.nextId(), BatonError);
  }
});

test("leadership is read by anybody", async (t) => {
  const { app, fake } = await beside(t);
  const epoch = await fake.lead();
  assert.equal((await app.leadership.get()).epoch, epoch);
  assert.equal((await gathered(app.leadership.list())).length, 1);
  await app.leadership.resign();
  await fake.handOver;
  assert.equal(app.isLeader(), false);
});

test("before it is connected, a call says so", async () => {
  await assert.rejects(new Sidecar().state.get("a"), NotConnected);
});
