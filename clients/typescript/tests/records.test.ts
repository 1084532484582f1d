/** Checkpoints and heartbeats over the stream. */
import assert from "node:assert/strict";
import test from "node:test";
import { status } from "@grpc/grpc-js";
import { AlreadyExists, Fenced, LimitExceeded, Unavailable } from "../src/index.js";
import { StreamRecords } from "../src/records.js";
import { beside, eventually, resultOf } from "./beside.js";
import type { Entry } from "../src/outbox.js";

const RUN = { runId: 1n, attempt: 1, epoch: 7n };

/** Records whose answers the test gives. */
function recorded() {
  const sent: Entry[] = [];
  const records = new StreamRecords((entry) => sent.push(entry));
  const answer = (number: bigint, code?: status) => {
    const error = code && { error: { code, message: status[code] } };
    records.stored({ number, ...error } as never);
  };
  return { records, sent, answer };
}

test("steps and heartbeats of a run travel over its stream", async (t) => {
  const { app, fake } = await beside(t, "stream");
  app.schedule("order", async (context) => {
    await context.step("charge", () => 1);
    await context.heartbeat({ progress: 0.5, message: "charged" });
    return "done";
  });
  await fake.lead();
  const calls = fake.calls;
  assert.equal(resultOf(await fake.execute("order")), "done");
  assert.equal(fake.calls, calls, "a unary call was made");
  const { checkpoints, progress } = fake.delivery(1n);
  assert.deepEqual([checkpoints.map(({ step }) => step), progress], [["charge"], "0.5 charged"]);
});

test("what the sidecar refuses is the error of the unary call", async () => {
  const { records, answer } = recorded();
  const refused = [
    [status.FAILED_PRECONDITION, Fenced],
    [status.ALREADY_EXISTS, AlreadyExists],
    [status.RESOURCE_EXHAUSTED, LimitExceeded],
  ] as const;
  for (const [index, [code, kind]] of refused.entries()) {
    const stored = assert.rejects(records.checkpoint(RUN, "charge", new Uint8Array()), kind);
    answer(BigInt(index + 1), code);
    await stored;
  }
});

test("while the database is away a checkpoint is sent again", async () => {
  const { records, sent, answer } = recorded();
  const stored = records.checkpoint(RUN, "charge", Uint8Array.of(1));
  answer(1n, status.UNAVAILABLE);
  await eventually(() => sent.length === 2);
  answer(2n);
  await stored;
  assert.deepEqual(
    sent.map(({ checkpoints }) => checkpoints?.[0]?.number),
    [1n, 2n],
  );
});

test("a broken stream fails what is not stored yet", async () => {
  const { records } = recorded();
  const stored = assert.rejects(records.heartbeat(RUN, { progress: 1 }), Unavailable);
  records.break();
  await stored;
  await assert.rejects(records.checkpoint(RUN, "charge", new Uint8Array()), Unavailable);
});

test("a heartbeat ends with the signal of its attempt", async () => {
  const { records } = recorded();
  const end = new AbortController();
  const reason = new Error("enough");
  const stored = assert.rejects(records.heartbeat(RUN, {}, { signal: end.signal }), reason);
  end.abort(reason);
  await stored;
});
