// Calls of the JSON API. Field names are those of protobuf's JSON mapping; unset fields are missing.

export interface About {
  cluster: string;
  dashboard: "read" | "operate";
  version: string;
  token: boolean;
}

export interface Leader {
  group: string;
  isLeader?: boolean;
  leaderRunnerId?: string;
  leaderHost?: string;
  epoch?: string;
  draining?: boolean;
}

export interface Term {
  group: string;
  epoch: string;
  runnerId: string;
  host: string;
  takenAt: string;
  endedAt?: string;
  endReason?: string;
}

export interface Runner {
  runnerId: string;
  host: string;
  version: string;
  alive?: boolean;
  healthy?: boolean;
  campaigning?: boolean;
  configRevision?: string;
  leads?: string[];
  startedAt: string;
  seenAt: string;
  self?: boolean;
}

export interface RunEvent {
  at: string;
  state?: string;
  outcome?: string;
  attempt?: number;
  epoch?: string;
  runnerId?: string;
  cause?: string;
}

export interface RunStep {
  step: string;
  storedAt?: string;
  attempt?: number;
  size?: number;
}

export interface Run {
  runId: string;
  kind: string;
  name: string;
  group: string;
  scheduledAt: string;
  attempt?: number;
  state: string;
  outcome?: string;
  reason?: string;
  startedAt?: string;
  finishedAt?: string;
  error?: string;
  progress?: number;
  progressMessage?: string;
  epoch?: string;
  runnerId?: string;
  idempotencyKey?: string;
  history?: RunEvent[];
  steps?: RunStep[];
  tickCount?: number;
  nextAttemptAt?: string;
  cancelRequested?: boolean;
  result?: string;
  createdAt?: string;
}

export interface Metadata {
  lastRunAt?: string;
  lastSuccessAt?: string;
  runCount?: string;
  lastError?: string;
  averageDuration?: string;
}

export interface Schedule {
  name: string;
  group?: string;
  cron?: string;
  every?: string;
  at?: string;
  timezone?: string;
  enabled?: boolean;
  paused?: boolean;
  pauseNote?: string;
  source?: string;
  nextRunAt?: string;
  lastRunAt?: string;
  retiredAt?: string;
  metadata?: Metadata;
  stale?: boolean;
  staleReason?: string;
}

export interface Singleton {
  name: string;
  group?: string;
  leader?: string;
  metadata?: Metadata;
  lastHeartbeat?: string;
  stale?: boolean;
  staleReason?: string;
}

export interface Percentiles {
  p50?: string;
  p95?: string;
  p99?: string;
  max?: string;
}

export interface NameStats {
  name: string;
  succeeded?: string;
  failed?: string;
  skipped?: string;
  live?: string;
  lateness?: Percentiles;
  durations?: Percentiles;
}

export interface Bucket {
  start: string;
  succeeded?: string;
  failed?: string;
  skipped?: string;
  live?: string;
}

export interface Stats {
  since: string;
  until: string;
  truncated?: boolean;
  names?: NameStats[];
  buckets?: Bucket[];
}

export interface Deferred {
  name: string;
  runId?: string;
  state: string;
  error?: string;
  createdAt: string;
  finishedAt?: string;
  expiresAt?: string;
}

export interface Entry {
  key: string;
  value?: string;
  version: string;
  updatedAt?: string;
  expiresAt?: string;
}

export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const TOKEN = "baton-token";
const USER = "baton-user";
const LIMIT_MS = 8000;

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (value: string) => sessionStorage.setItem(TOKEN, value),
};

export const user = {
  get: () => localStorage.getItem(USER) ?? "",
  set: (value: string) => localStorage.setItem(USER, value),
};

function headers(): Record<string, string> {
  const sent: Record<string, string> = { "Content-Type": "application/json" };
  if (token.get()) sent["Authorization"] = `Bearer ${token.get()}`;
  // Headers hold Latin-1 only: what else a name has is sent percent-encoded.
  if (user.get()) sent["Baton-User"] = user.get().replace(/[^\x20-\x7e]/gu, encodeURIComponent);
  return sent;
}

export async function call<T>(method: string, body: object = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/baton.v1.${method}`, {
      method: "POST",
      headers: headers(),
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(LIMIT_MS),
    });
  } catch {
    throw new ApiError("unreachable", "the sidecar does not answer");
  }
  const content = (await response.json().catch(() => ({}))) as T & { code?: string; message?: string };
  if (!response.ok) {
    throw new ApiError(content.code ?? "unknown", content.message ?? `HTTP ${response.status}`);
  }
  return content;
}

export async function about(): Promise<About> {
  const response = await fetch("/about.json");
  return (await response.json()) as About;
}
