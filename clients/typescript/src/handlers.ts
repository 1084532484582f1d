/** What the app can execute, by kind and name. */
import type { Context, JobRun } from "./context.js";
import type { scheduleOf, singletonOf } from "./declared.js";
import type { ExecuteRequest } from "./gen/baton/v1/callback_pb.js";
import { RunKind } from "./gen/baton/v1/runs_pb.js";
import type { DefaultsOf, JobDefaults } from "./job_spec.js";

/** Executes one attempt; what it returns or throws is the outcome. */
export type Handler<P = unknown, S = unknown> = (context: Context<P, S>) => unknown;

/** Executes one attempt of a job. */
export type JobHandler<P = unknown, S = unknown> = (context: JobRun<P, S>) => unknown;

/** The registered handlers, and what was declared with them. */
export class Handlers {
  readonly schedules = new Map<string, Handler>();
  readonly singletons = new Map<string, Handler>();
  readonly jobs = new Map<string, Handler>();
  readonly declaredSchedules: ReturnType<typeof scheduleOf>[] = [];
  readonly declaredSingletons: ReturnType<typeof singletonOf>[] = [];
  readonly jobDefaults = new Map<string, JobDefaults>();

  /** What `app.job` gives to the jobs of a name. */
  readonly defaultsOf: DefaultsOf = (name) => this.jobDefaults.get(name);

  /** The handler for a run; undefined: this app does not know it. */
  find({ kind, name }: ExecuteRequest): Handler | undefined {
    if (kind === RunKind.JOB) return this.jobs.get(name);
    return (kind === RunKind.SINGLETON ? this.singletons : this.schedules).get(name);
  }
}
