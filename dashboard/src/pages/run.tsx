import { type Deferred, type Run, type RunEvent, call } from "../api";
import { type Stretch, Lanes } from "../charts";
import { between, bytes, span, time, visible, word } from "../format";
import { Action, Badge, Card, Link, Loaded, Name, Table, When } from "../parts";
import { useLive } from "../state";
import { RunBadge } from "./runs";

export function RunPage(props: { id: string; operate: boolean }) {
  const run = useLive(() => call<{ run: Run }>("Runs/Get", { runId: props.id }), props.id);
  return (
    <Loaded live={run}>
      {(data) => (
        <>
          <div class="page-title">
            <h1>
              <Name text={data.run.name} /> <RunBadge run={data.run} />
            </h1>
            {props.operate && <Actions run={data.run} done={run.again} />}
          </div>
          <Facts run={data.run} />
          <Timeline run={data.run} />
          <Card title="What happened">
            <Table
              label="What happened"
              empty="Nothing yet."
              rows={data.run.history ?? []}
              columns={[
                { title: "When", cell: (event) => <When at={event.at} /> },
                { title: "State", cell: (event) => word(event.outcome, "OUTCOME_") || word(event.state, "RUN_STATE_") },
                { title: "Attempt", kind: "number", cell: (event) => event.attempt ?? 0 },
                { title: "Runner", kind: "less", cell: (event) => <Name text={event.runnerId ?? ""} most={36} /> },
                { title: "Cause", kind: "wide", cell: (event) => <Name text={event.cause ?? ""} most={300} /> },
              ]}
            />
          </Card>
          <Steps run={data.run} />
          <Deferreds id={props.id} />
          {data.run.result && (
            <Card title="Result">
              <pre>{bytes(data.run.result)}</pre>
            </Card>
          )}
        </>
      )}
    </Loaded>
  );
}

function Actions(props: { run: Run; done: () => void }) {
  const { run } = props;
  const failed = run.outcome === "OUTCOME_FAILED";
  const open = run.state !== "RUN_STATE_ENDED" && run.kind !== "RUN_KIND_SINGLETON";
  return (
    <div class="actions">
      {failed && run.kind !== "RUN_KIND_SINGLETON" && (
        <Action
          label="Retry"
          question="Queue this run again, with its stored steps and all of its retries?"
          run={async () => {
            await call("Runs/Retry", { runId: run.runId });
            return "The run is queued again.";
          }}
          done={props.done}
        />
      )}
      {open && (
        <Action
          label="Cancel"
          danger
          question="End this run as skipped? A running attempt is stopped."
          note="Why, for its history"
          run={async (note) => {
            const answer = await call<{ run: Run }>("Runs/Cancel", { runId: run.runId, note });
            return answer.run.outcome ? "The run has ended as skipped." : "The running attempt is asked to stop.";
          }}
          done={props.done}
        />
      )}
    </div>
  );
}

function Facts(props: { run: Run }) {
  const { run } = props;
  return (
    <Card title={`Run ${run.runId}`}>
      <dl class="facts">
        <dt>Kind</dt>
        <dd>{word(run.kind, "RUN_KIND_")}</dd>
        <dt>Group</dt>
        <dd><Name text={run.group} /></dd>
        <dt>Due</dt>
        <dd><When at={run.scheduledAt} /></dd>
        <dt>Started</dt>
        <dd><When at={run.startedAt} /> {run.startedAt && <span class="quiet">{between(run.scheduledAt, run.startedAt)} late</span>}</dd>
        <dt>Ended</dt>
        <dd><When at={run.finishedAt} /> {run.finishedAt && <span class="quiet">took {between(run.startedAt, run.finishedAt)}</span>}</dd>
        <dt>Attempt</dt>
        <dd>{run.attempt ?? 0}{run.nextAttemptAt && <> · next <When at={run.nextAttemptAt} relative /></>}</dd>
        <dt>Runner</dt>
        <dd><Name text={run.runnerId ?? ""} /></dd>
        <dt>Epoch</dt>
        <dd>{run.epoch ?? "–"}</dd>
        {run.progress !== undefined && (
          <>
            <dt>Progress</dt>
            <dd><progress max={1} value={run.progress} /> <Name text={run.progressMessage ?? ""} most={100} /></dd>
          </>
        )}
      </dl>
      {run.error && <pre class="error">{visible(run.error).replaceAll("\\u000a", "\n")}</pre>}
    </Card>
  );
}

/** One stretch per attempt, from the change to running to the next change; then the steps. */
function stretches(run: Run): Stretch[] {
  const found: Stretch[] = [];
  const events = run.history ?? [];
  events.forEach((event, n) => {
    if (event.state !== "RUN_STATE_RUNNING") return;
    const next: RunEvent | undefined = events[n + 1];
    const from = Date.parse(event.at);
    const to = next ? Date.parse(next.at) : Date.now();
    const kind = !next ? "live" : next.outcome === "OUTCOME_SUCCEEDED" ? "succeeded" : next.outcome === "OUTCOME_SKIPPED" ? "skipped" : "failed";
    found.push({ lane: `attempt ${event.attempt ?? 0}`, from, to, kind, title: `${span(to - from)} on ${event.runnerId ?? ""}${next?.cause ? `: ${next.cause}` : ""}` });
  });
  const starts = new Map(found.map((one) => [one.lane, one.from]));
  for (const step of run.steps ?? []) {
    if (!step.storedAt) continue;
    const lane = `attempt ${step.attempt ?? 0}`;
    const to = Date.parse(step.storedAt);
    const from = Math.min(to, starts.get(lane) ?? to);
    starts.set(lane, to);
    found.push({ lane: `step ${step.step}`, from, to, kind: "step", title: `stored at ${time(step.storedAt)} by ${lane}, after ${span(to - from)}` });
  }
  return found;
}

function Timeline(props: { run: Run }) {
  const found = stretches(props.run);
  if (!found.length) return null;
  const from = Math.min(...found.map((one) => one.from));
  const to = Math.max(...found.map((one) => one.to), from + 1);
  return (
    <Card title="Attempts and steps">
      <Lanes stretches={found} from={from} to={to} label="Attempts and steps" ends={[time(new Date(from).toISOString()), span(to - from)]} />
    </Card>
  );
}

function Steps(props: { run: Run }) {
  if (!props.run.steps?.length) return null;
  return (
    <Card title="Stored steps">
      <Table
        label="Stored steps"
        empty=""
        rows={props.run.steps}
        columns={[
          { title: "Step", cell: (step) => <Name text={step.step} /> },
          { title: "Stored", cell: (step) => <When at={step.storedAt} /> },
          { title: "Attempt", kind: "number", cell: (step) => step.attempt ?? "–" },
          { title: "Bytes", kind: "number", cell: (step) => step.size ?? 0 },
        ]}
      />
    </Card>
  );
}

function Deferreds(props: { id: string }) {
  const found = useLive(() => call<{ deferreds?: Deferred[] }>("Deferreds/List", { runId: props.id }), props.id);
  if (!found.data?.deferreds?.length) return null;
  return (
    <Card title="Deferreds">
      <Table
        label="Deferreds"
        empty=""
        rows={found.data.deferreds}
        columns={[
          { title: "Name", cell: (one) => <Name text={one.name} /> },
          { title: "State", cell: (one) => <Badge kind={one.state === "DEFERRED_STATE_PENDING" ? "info" : one.state === "DEFERRED_STATE_COMPLETED" ? "good" : "bad"}>{word(one.state, "DEFERRED_STATE_")}</Badge> },
          { title: "Created", cell: (one) => <When at={one.createdAt} /> },
          { title: "Ended", cell: (one) => <When at={one.finishedAt} /> },
          { title: "Expires", cell: (one) => <When at={one.expiresAt} relative /> },
          { title: "Error", kind: "wide", cell: (one) => <Name text={one.error ?? ""} most={100} /> },
        ]}
      />
      <p class="quiet">Complete one with its token: <code>baton deferred complete TOKEN</code>. <Link to="/runs">All runs</Link></p>
    </Card>
  );
}
