/**
 * Submits a job inside the user's own transaction: `SELECT baton.enqueue(…)` on the user's own connection.
 *
 * The job exists if, and only if, that transaction commits. SQL has no back-off: of `retry` only the attempts count.
 */
import { completed, type DefaultsOf, type JobRequest } from "./job_spec.js";

/** A connection of node-postgres (a Client, or a client of a Pool), or anything with the same `query`. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Where `baton.enqueue` is, and for which cluster. */
export interface EnqueueTarget {
  readonly cluster: string;
  /** The schema of Baton; `baton`. */
  readonly schema?: string | undefined;
}

type Argument = readonly [name: string, type: string, value: unknown];

/** Submits the job with the transaction that is open on `client`; its id. */
export async function enqueue(
  client: Queryable,
  { cluster, schema = "baton" }: EnqueueTarget,
  request: JobRequest,
  defaultsOf: DefaultsOf = () => undefined,
): Promise<bigint> {
  const job = completed(request, defaultsOf);
  const given = argumentsOf(cluster, job).filter(([, , value]) => value !== undefined);
  const list = given.map(([name, type], index) => `${name} => $${index + 1}::${type}`).join(", ");
  const text = `SELECT ${quoted(schema)}.enqueue(${list}) AS job_id`;
  const { rows } = await client.query(
    text,
    given.map(([, , value]) => value),
  );
  const [row] = rows as { job_id: string | number | bigint }[];
  if (!row) throw new Error("baton.enqueue returned no row");
  return BigInt(row.job_id);
}

function argumentsOf(cluster: string, job: JobRequest): Argument[] {
  const { unique, labels } = job;
  return [
    ["cluster", "text", cluster],
    ["name", "text", job.name],
    ["payload", "jsonb", payloadOf(job)],
    ["queue", "text", job.queue],
    ["priority", "text", job.priority],
    ["due_at", "timestamptz", job.dueAt?.toISOString()],
    ["delay", "interval", intervalOf(job.delayMs)],
    ["expires_at", "timestamptz", job.expiresAt?.toISOString()],
    ["key", "text", job.key],
    ["unique_key", "text", unique && (unique.key ?? "")],
    ["unique_window", "interval", intervalOf(unique?.windowMs)],
    ["on_conflict", "text", unique?.onConflict],
    ["attempts", "int", job.retry?.attempts],
    ["timeout", "interval", intervalOf(job.timeoutMs)],
    ["labels", "jsonb", labels && JSON.stringify(labels)],
    ["batch", "text", job.batch],
    ["content_type", "text", job.contentType],
  ];
}

function payloadOf({ name, payload = null }: JobRequest): string {
  const text = payload instanceof Uint8Array ? undefined : JSON.stringify(payload);
  if (text !== undefined) return text;
  throw new TypeError(`job '${name}': the payload of enqueue must be JSON`);
}

function intervalOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${ms} milliseconds`;
}

function quoted(schema: string): string {
  return `"${schema.replaceAll('"', '""')}"`;
}
