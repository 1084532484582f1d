/** Jobs: handlers, submitting, and the user's own transaction. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { status } from "@grpc/grpc-js";
import { JobPriority } from "../src/gen/baton/v1/job_types_pb.js";
import { Outcome, RunState } from "../src/gen/baton/v1/runs_pb.js";
import {
  AlreadyExists,
  Baton,
  Cancelled,
  DeadlineExceeded,
  enqueue,
  type JobRun,
  NotFound,
  Result,
  Retry,
  Sidecar,
  Snooze,
} from "../src/index.js";
import { eventually, gathered, quietApp } from "./beside.js";
import { Refused } from "./fake/serving.js";
import { FakeSidecar } from "./fake/sidecar.js";

/** An app with handlers, attached to a fake. */
async function attached(t: TestContext, register: (app: Baton) => unknown) {
  const fake = await FakeSidecar.start();
  const app = quietApp();
  register(app);
  app.attach({ sidecar: fake.address });
  await fake.useStream();
  await eventually(() => app.attached);
  t.after(async () => {
    await app.close();
    fake.close();
  });
  return { app, fake };
}

const json = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as unknown;

test("a submitted job runs, and its result is waited for", async (t) => {
  const seen: JobRun<{ to: string }>[] = [];
  const { app, fake } = await attached(t, (app) =>
    app.job<{ to: string }>("send-mail", (context) => {
      seen.push(context);
      return { sent: context.json()?.to };
    }),
  );
  assert.deepEqual(fake.stream.primary.hello?.jobs, ["send-mail"]);
  const labels = { tenant: "a" };
  const options = { priority: "high", key: "a", labels, batch: "b" } as const;
  const { id, duplicate } = await app.jobs.submit("send-mail", { to: "x" }, options);
  assert.equal(duplicate, false);
  const job = await app.jobs.wait(id);
  assert.deepEqual([job.outcome, json(job.result)], [Outcome.SUCCEEDED, { sent: "x" }]);
  const [run] = seen;
  assert.deepEqual([run?.runId, run?.queue, run?.key], [id, "default", "a"]);
  assert.deepEqual([run?.labels, run?.batch, run?.priority], [labels, "b", "high"]);
  assert.deepEqual([run?.rescues, run?.attempt], [0, 1]);
  const { group, isLeader, entityType } = run?.cluster ?? {};
  assert.deepEqual([group, isLeader, entityType, app.isLeader()], ["", false, "job", false]);
  assert.equal((await app.jobs.batch("b")).total, 1n);
});

test("the options of a job are the defaults of its submissions", async (t) => {
  const { app, fake } = await attached(t, (app) => {
    const retry = { attempts: 7, initialMs: 10 };
    app.job("mail", { queue: "mail", priority: "low", timeoutMs: 1000, retry }, () => undefined);
  });
  const ids = await app.jobs.submitMany([
    { name: "mail" },
    { name: "mail", queue: "fast", priority: "critical" },
    { name: "other" },
  ]);
  const specs = ids.map(({ id }) => fake.jobs.find(id).spec);
  assert.deepEqual(
    specs.map(({ queue, priority, retry }) => [queue, priority, retry?.attempts]),
    [
      ["mail", JobPriority.LOW, 7],
      ["fast", JobPriority.CRITICAL, 7],
      ["", JobPriority.UNSPECIFIED, undefined],
    ],
  );
});

test("G13: a submission whose answer was lost is repeated with the same request id", async (t) => {
  const { app, fake } = await attached(t, (app) => app.job("mail", () => undefined));
  fake.refusals.push(new Refused(status.UNAVAILABLE));
  const { id } = await app.jobs.submit("mail", undefined, { requestId: "once" });
  assert.deepEqual(await app.jobs.submit("mail", undefined, { requestId: "once" }), {
    ...{ id, duplicate: false },
  });
  await app.jobs.submit("mail");
  assert.equal(fake.jobs.all.length, 2);
  assert.equal(new Set(fake.jobs.requestIds).size, 2);
});

test("Retry and Snooze deliver a job again; only a failure uses a retry", async (t) => {
  const { app, fake } = await attached(t, (app) =>
    app.job("flow", { retry: { attempts: 2 } }, ({ attempt }) => {
      if (attempt === 1) throw new Snooze({ afterMs: 60_000 });
      if (attempt === 2) throw new Retry("again", { afterMs: 5000 });
      if (attempt === 3) throw new Snooze({ until: new Date(fake.jobs.nowMs + 1000) });
      return attempt;
    }),
  );
  const { id } = await app.jobs.submit("flow");
  const { job } = fake.jobs.find(id);
  for (const [attempt, ms] of [
    [1, 60_000],
    [2, 5000],
    [3, 1000],
  ] as const) {
    await eventually(() => job.attempt === attempt && job.state === RunState.WAITING);
    fake.jobs.advance(ms - 1);
    await new Promise((go) => setTimeout(go, 20));
    assert.equal(job.attempt, attempt);
    fake.jobs.advance(1);
  }
  assert.deepEqual(json((await app.jobs.wait(id)).result), 4);
  assert.equal(job.failures, 1);
});

test("G6: follow-up jobs are submitted with the outcome", async (t) => {
  const done: unknown[] = [];
  const { app, fake } = await attached(t, (app) => {
    app.job("first", () => new Result("ok", undefined, { jobs: [{ name: "next", payload: 5 }] }));
    app.job<number>("next", { queue: "slow" }, (context) => {
      done.push([context.json(), context.queue]);
    });
  });
  await app.jobs.submit("first");
  await eventually(() => done.length);
  assert.deepEqual(done, [[5, "slow"]]);
  assert.equal(fake.jobs.all.length, 2);
});

test("G16: jobs of one key run one at a time and share state", async (t) => {
  let running = 0;
  const { app } = await attached(t, (app) =>
    app.job<unknown, { count: number }>("account", async (context) => {
      assert.equal(++running, 1);
      await new Promise((go) => setTimeout(go, 20));
      running -= 1;
      const count = (context.state.json()?.count ?? 0) + 1;
      if (count === 1) await context.putState({ count: 0 });
      return new Result(count, { count });
    }),
  );
  const ids = await app.jobs.submitMany([1, 2, 3].map(() => ({ name: "account", key: "a" })));
  const jobs = await Promise.all(ids.map(({ id }) => app.jobs.wait(id)));
  assert.deepEqual(
    jobs.map(({ result }) => json(result)),
    [1, 2, 3],
  );
  const entry = await app.state.get("job-state:account/a");
  assert.deepEqual(entry?.value, { count: 3 });
});

test("G5: the steps of a job are kept over its attempts", async (t) => {
  const done: number[] = [];
  const { app, fake } = await attached(t, (app) =>
    app.job("order", async (context) => {
      await context.step("charge", () => done.push(context.attempt));
      if (context.attempt === 1) throw new Error("crashed");
      await context.heartbeat({ progress: 1, message: "charged" });
    }),
  );
  const { id } = await app.jobs.submit("order");
  await eventually(() => fake.jobs.find(id).job.state === RunState.WAITING);
  assert.equal(fake.jobs.find(id).job.error, "Error: crashed");
  fake.jobs.advance(1000);
  await app.jobs.wait(id);
  assert.deepEqual([done, fake.jobs.find(id).report.progress], [[1], "1 charged"]);
});

test("G14: a job runs without a term, and ends when it is cancelled or the stream breaks", async (t) => {
  const reasons: unknown[] = [];
  const { app, fake } = await attached(t, (app) =>
    app.job("slow", async (context) => {
      await context.sleep(60_000).catch((reason: unknown) => reasons.push(reason));
    }),
  );
  const { id } = await app.jobs.submit("slow");
  const isRunning = (jobId: bigint) => fake.jobs.find(jobId).job.state === RunState.RUNNING;
  await eventually(() => isRunning(id));
  assert.deepEqual(await app.jobs.cancel(id), { cancelled: 0, requested: 1 });
  await eventually(() => reasons.length === 1);
  const { id: next } = await app.jobs.submit("slow");
  await eventually(() => isRunning(next));
  fake.kill();
  await eventually(() => reasons.length === 2);
  assert.ok(reasons.every((reason) => reason instanceof Cancelled));
  await fake.listen();
  await eventually(() => fake.stream.open.length === 1);
  fake.jobs.advance(1);
  await eventually(() => fake.jobs.find(next).job.attempt === 2);
  assert.equal(fake.jobs.find(next).job.rescues, 1);
});

test("G18: a job that cannot finish in the drain time is handed back", async (t) => {
  let started = false;
  const { app, fake } = await attached(t, (app) =>
    app.job("slow", async (context) => {
      started = true;
      await context.sleep(60_000);
    }),
  );
  const { id } = await app.jobs.submit("slow");
  const { job } = fake.jobs.find(id);
  await eventually(() => started);
  await app.drain(100);
  await app.close();
  await eventually(() => job.state === RunState.WAITING);
  assert.match(job.error, /the attempt was ended/);
});

test("jobs are listed, rescheduled, retried, watched, and waited for in vain", async (t) => {
  const { app, fake } = await attached(t, (app) => app.job("mail", () => undefined));
  const unique = { key: "k", onConflict: "existing" } as const;
  const later = { delayMs: 60_000, unique };
  const { id } = await app.jobs.submit("mail", 1, later);
  assert.deepEqual(await app.jobs.submit("mail", 2, later), { id, duplicate: true });
  const reject = { unique: { key: "k", onConflict: "reject" } } as const;
  await assert.rejects(app.jobs.submit("mail", 3, reject), AlreadyExists);
  await assert.rejects(app.jobs.submit("mail", 3, { delayMs: 1, dueAt: new Date() }), TypeError);
  await assert.rejects(app.jobs.wait(id, { timeoutMs: 150 }), DeadlineExceeded);
  await assert.rejects(app.jobs.wait(1n), NotFound);
  for (let count = 0; count < 3; count++) await app.jobs.submit("other");
  assert.equal((await gathered(app.jobs.list({ name: "other" }))).length, 3);
  assert.equal((await app.jobs.pauseQueue("default", "later")).pauseNote, "later");
  await app.jobs.retry(id);
  assert.equal((await app.jobs.stats())[0]?.ready, 4n);
  await app.jobs.resumeQueue("default");
  const states = (await gathered(app.jobs.watch(id))).map(({ state }) => state);
  assert.equal(states.at(-1), RunState.ENDED);
  await app.jobs.cancel({ name: "other" }, { note: "no handler" });
  assert.equal(fake.jobs.find(id).job.outcome, Outcome.SUCCEEDED);
});

test("dead letters are listed, replayed and discarded", async (t) => {
  let broken = true;
  const { app } = await attached(t, (app) =>
    app.job("mail", { retry: { attempts: 1 } }, () => {
      if (broken) throw new Error("no route");
    }),
  );
  const ids = await app.jobs.submitMany([{ name: "mail" }, { name: "mail" }]);
  for (const { id } of ids) assert.equal((await app.jobs.wait(id)).error, "Error: no route");
  assert.equal((await gathered(app.jobs.dead({ name: "mail" }))).length, 2);
  assert.equal(await app.jobs.replay({ name: "mail" }, { dryRun: true }), 2);
  broken = false;
  const [first, second] = ids.map(({ id }) => id);
  assert.ok(first && second);
  assert.equal(await app.jobs.replay([first]), 1);
  assert.equal((await app.jobs.wait(first)).outcome, Outcome.SUCCEEDED);
  assert.equal(await app.jobs.discard([second]), 1);
  await assert.rejects(app.jobs.get(second), NotFound);
});

/** What node-postgres would be asked. */
function recordingClient() {
  const queries: { text: string; values: unknown[] }[] = [];
  return {
    queries,
    query: (text: string, values: unknown[]) => {
      queries.push({ text, values });
      return Promise.resolve({ rows: [{ job_id: "9007199254740993" }] });
    },
  };
}

test("a job is submitted in the user's own transaction", async (t) => {
  const { app } = await attached(t, (app) => app.job("mail", { queue: "mail" }, () => undefined));
  const client = recordingClient();
  assert.equal(await app.jobs.enqueue(client, "mail", { to: "x" }), 9007199254740993n);
  assert.deepEqual(client.queries, [
    {
      text:
        'SELECT "baton".enqueue(cluster => $1::text, name => $2::text, payload => $3::jsonb, ' +
        "queue => $4::text) AS job_id",
      values: ["test", "mail", '{"to":"x"}', "mail"],
    },
  ]);
});

test("enqueue passes every option, by name", async () => {
  const client = recordingClient();
  const at = new Date("2027-01-01T00:00:00Z");
  await enqueue(
    client,
    { cluster: "orders", schema: 'b"x' },
    {
      ...{ name: "mail", payload: [1], queue: "q", priority: "critical", dueAt: at, expiresAt: at },
      ...{ key: "k", unique: { windowMs: 1500, onConflict: "replace" }, retry: { attempts: 5 } },
      ...{ timeoutMs: 2000, labels: { a: "b" }, batch: "n", contentType: "text/plain" },
    },
  );
  const [{ text, values } = { text: "", values: [] }] = client.queries;
  const names = [...text.matchAll(/(\w+) => \$(\d+)::(\w+)/g)].map(([, name, , type]) => [
    name,
    type,
  ]);
  const iso = at.toISOString();
  assert.deepEqual(
    names.map(([name, type], index) => [name, type, values[index]]),
    [
      ["cluster", "text", "orders"],
      ["name", "text", "mail"],
      ["payload", "jsonb", "[1]"],
      ["queue", "text", "q"],
      ["priority", "text", "critical"],
      ["due_at", "timestamptz", iso],
      ["expires_at", "timestamptz", iso],
      ["key", "text", "k"],
      ["unique_key", "text", ""],
      ["unique_window", "interval", "1500 milliseconds"],
      ["on_conflict", "text", "replace"],
      ["attempts", "int", 5],
      ["timeout", "interval", "2000 milliseconds"],
      ["labels", "jsonb", '{"a":"b"}'],
      ["batch", "text", "n"],
      ["content_type", "text", "text/plain"],
    ],
  );
  assert.ok(text.startsWith('SELECT "b""x".enqueue('));
  const raw = { name: "mail", payload: new Uint8Array() };
  await assert.rejects(enqueue(client, { cluster: "orders" }, raw), TypeError);
  await assert.rejects(new Sidecar().jobs.enqueue(client, "mail"), /cluster is not known/);
});
