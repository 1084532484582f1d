/** An app beside a fake sidecar, for one test. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { Baton } from "../src/index.js";
import { FakeSidecar } from "./fake/sidecar.js";

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** How the sidecar reaches the app. */
export type Via = "callback" | "stream";

/** An app beside a fake; both end with the test. */
export async function beside(
  t: TestContext,
  via: Via = "callback",
): Promise<{ app: Baton; fake: FakeSidecar }> {
  const fake = await FakeSidecar.start();
  const app = new Baton({ log: silent });
  if (via === "stream") {
    app.attach({ sidecar: fake.address });
    await fake.useStream();
  } else {
    fake.callAppAt(await app.start({ address: "127.0.0.1:0", sidecar: fake.address }));
  }
  t.after(async () => {
    fake.app.shut();
    await app.close();
    fake.close();
  });
  return { app, fake };
}

type Beside = (t: TestContext) => ReturnType<typeof beside>;

/** A test of what holds however the sidecar reaches the app. */
export function testBoth(title: string, body: (t: TestContext, beside: Beside) => unknown): void {
  for (const via of ["callback", "stream"] as const) {
    void test(`${title} (${via})`, async (t) => {
      await body(t, (context) => beside(context, via));
    });
  }
}

/** An app that is not served yet. */
export function quietApp(): Baton {
  return new Baton({ log: silent });
}

/** A directory that ends with the test. */
export async function directory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "baton-"));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

/** Waits until something is so. */
export async function eventually(isSo: () => unknown, timeoutMs = 60_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await isSo())) {
    assert.ok(performance.now() < end, `not within ${timeoutMs} ms: ${String(isSo)}`);
    await new Promise((go) => setTimeout(go, 5));
  }
}

/** Everything that comes. */
export async function gathered<T>(things: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const thing of things) all.push(thing);
  return all;
}

/** The JSON that a run answered with. */
export function resultOf(response: {
  outcome: { case?: string | undefined; value?: object | undefined };
}): unknown {
  const { value } = response.outcome;
  assert.ok(value && "result" in value && value.result instanceof Uint8Array);
  return value.result.length > 0 ? JSON.parse(new TextDecoder().decode(value.result)) : undefined;
}
