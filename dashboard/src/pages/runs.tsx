import { type Run, call } from "../api";
import { between, word } from "../format";
import { Badge, Card, Link, Loaded, Name, Pager, Search, Select, Table, When } from "../parts";
import { useFilter, useLive } from "../state";

const KINDS: Record<string, string> = {
  OUTCOME_SUCCEEDED: "good",
  OUTCOME_FAILED: "bad",
  OUTCOME_SKIPPED: "quiet-badge",
};

export function RunBadge(props: { run: Run }) {
  const { run } = props;
  if (run.outcome) {
    const reason = run.reason ? `: ${word(run.reason, "SKIP_REASON_")}` : "";
    return <Badge kind={KINDS[run.outcome] ?? ""}>{word(run.outcome, "OUTCOME_") + reason}</Badge>;
  }
  const stopping = run.cancelRequested ? ", stopping" : "";
  return <Badge kind={run.state === "RUN_STATE_WAITING" ? "warn" : "info"}>{word(run.state, "RUN_STATE_") + stopping}</Badge>;
}

export function Runs() {
  const [name, setName] = useFilter("name");
  const [outcome, setOutcome] = useFilter("outcome");
  const [state, setState] = useFilter("state");
  const [kind, setKind] = useFilter("kind");
  const [page, setPage] = useFilter("page");
  const [since, setSince] = useFilter("since");
  const asked = { name, outcome: outcome || undefined, state: state || undefined, kind: kind || undefined, pageSize: 50, pageToken: page };
  const from = () => (since ? { since: new Date(Date.now() - Number(since) * 1000).toISOString() } : {});
  // A page token is valid with the same filters only, and `since` moves: pages are of all times.
  const load = () => call<{ runs?: Run[]; nextPageToken?: string }>("Runs/List", { ...asked, ...(page ? {} : from()) });
  const runs = useLive(load, JSON.stringify([asked, since]));
  return (
    <>
      <div class="page-title">
        <h1>Runs</h1>
      </div>
      <div class="filters">
        <Search label="Name" value={name} set={setName} />
        <Select label="Outcome" value={outcome} set={setOutcome} options={[["", "any"], ["OUTCOME_SUCCEEDED", "succeeded"], ["OUTCOME_FAILED", "failed"], ["OUTCOME_SKIPPED", "skipped"]]} />
        <Select label="State" value={state} set={setState} options={[["", "any"], ["RUN_STATE_QUEUED", "queued"], ["RUN_STATE_RUNNING", "running"], ["RUN_STATE_WAITING", "waiting"], ["RUN_STATE_ENDED", "ended"]]} />
        <Select label="Kind" value={kind} set={setKind} options={[["", "any"], ["RUN_KIND_SCHEDULE", "schedule"], ["RUN_KIND_TRIGGER", "trigger"], ["RUN_KIND_SINGLETON", "singleton"]]} />
        <Select label="Since" value={since} set={setSince} options={[["", "ever"], ["3600", "last hour"], ["86400", "last 24 hours"]]} />
      </div>
      <Card title="Newest first">
        <Loaded live={runs}>
          {(data) => (
            <>
              <Table
                label="Runs"
                empty="No run fits these filters."
                rows={data.runs ?? []}
                columns={[
                  { title: "Run", cell: (run) => <Link to={`/runs/${run.runId}`}><Name text={run.name} most={48} /></Link> },
                  { title: "Kind", kind: "less", cell: (run) => word(run.kind, "RUN_KIND_") },
                  { title: "State", cell: (run) => <RunBadge run={run} /> },
                  { title: "Due", cell: (run) => <When at={run.scheduledAt} /> },
                  { title: "Late", kind: "number", cell: (run) => between(run.scheduledAt, run.startedAt) },
                  { title: "Took", kind: "number", cell: (run) => between(run.startedAt, run.finishedAt) },
                  { title: "Attempt", kind: "number", cell: (run) => run.attempt ?? 0 },
                  { title: "Error", kind: "wide", cell: (run) => <Name text={run.error ?? ""} most={80} /> },
                ]}
              />
              <Pager page={page} next={since ? undefined : data.nextPageToken} set={setPage} />
            </>
          )}
        </Loaded>
      </Card>
    </>
  );
}
