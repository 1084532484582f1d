/** Several processes of one pod, each attached by `app.run()`. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { RunState } from "../src/gen/baton/v1/runs_pb.js";
import { Sidecar } from "../src/index.js";
import { directory, eventually } from "./beside.js";
import { FakeSidecar } from "./fake/sidecar.js";

const INDEX = new URL("../src/index.js", import.meta.url).href;
const WORKERS = 3;
const PROGRAM = `
import cluster from "node:cluster";
import { Baton } from ${JSON.stringify(INDEX)};
if (cluster.isPrimary) {
  for (let count = 0; count < ${WORKERS}; count++) cluster.fork();
  process.on("SIGTERM", () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill("SIGTERM");
  });
} else {
  const app = new Baton();
  app.schedule("where", () => process.pid);
  app.job("work", async (context) => {
    await new Promise((go) => setTimeout(go, 300));
    return process.pid;
  });
  await app.run();
  process.disconnect();
}
`;

async function workers(t: TestContext) {
  const fake = await FakeSidecar.start();
  const program = join(await directory(t), "program.mjs");
  await writeFile(program, PROGRAM);
  const child = spawn(process.execPath, [program], {
    stdio: "ignore",
    env: { ...process.env, BATON_APP_ADDRESS: "", BATON_API_ADDRESS: fake.address },
  });
  const script = new Sidecar().connect({ sidecar: fake.address });
  t.after(async () => {
    child.kill("SIGKILL"); // workers end when their primary is gone
    await script.close();
    fake.close();
  });
  await fake.useStream(WORKERS);
  return { fake, child, script };
}

const pidOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

test("each worker of a Node cluster attaches; jobs go to all, a term to one", async (t) => {
  const { fake, child, script } = await workers(t);
  const pids = fake.stream.open.map(({ hello }) => hello?.processId);
  assert.equal(new Set(pids).size, WORKERS);
  const ids = await script.jobs.submitMany(Array.from({ length: 6 }, () => ({ name: "work" })));
  const jobs = await Promise.all(ids.map(({ id }) => script.jobs.wait(id)));
  const served = new Set(jobs.map(({ result }) => pidOf(result)));
  assert.deepEqual([...served].sort(), [...pids].sort());
  await fake.lead();
  const { outcome } = await fake.execute("where");
  assert.ok(outcome.case === "succeeded");
  assert.equal(pidOf(outcome.value.result), pids[0]);
  child.kill("SIGTERM");
  if (child.exitCode === null) await once(child, "exit", { signal: AbortSignal.timeout(30_000) });
  assert.deepEqual([child.exitCode, fake.leads, fake.stream.open.length], [0, false, 0]);
});

test("when the first worker is killed its jobs and its term go to another", async (t) => {
  const { fake, script } = await workers(t);
  await fake.lead();
  const [first, second] = fake.stream.open.map(({ hello }) => hello?.processId);
  const { id } = await script.jobs.submit("work");
  const kept = fake.jobs.find(id);
  await eventually(() => kept.job.state === RunState.RUNNING);
  process.kill(Number(kept.process?.hello?.processId), "SIGKILL");
  await eventually(() => kept.job.rescues === 1);
  const { result } = await script.jobs.wait(id);
  assert.notEqual(pidOf(result), first);
  await fake.lead();
  const { outcome } = await fake.execute("where");
  assert.ok(outcome.case === "succeeded");
  assert.equal(pidOf(outcome.value.result), second);
});
