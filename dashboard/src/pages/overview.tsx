import { type Leader, type Run, type Runner, type Schedule, type Singleton, type Stats, call } from "../api";
import { Outcomes } from "../charts";
import { count, short, visible } from "../format";
import { Badge, Card, Link, Loaded, Name, Select, Table, Tile, When } from "../parts";
import { useFilter, useLive } from "../state";
import { RunBadge } from "./runs";

export const WINDOWS: [string, string][] = [
  ["3600s", "last hour"],
  ["", "last 24 hours"],
  ["604800s", "last 7 days"],
];

export function Overview() {
  const [window, setWindow] = useFilter("window");
  const leaders = useLive(() => call<{ leaders?: Leader[] }>("Leadership/List"), "leaders");
  const stats = useLive(() => call<Stats>("Runs/Stats", window ? { window } : {}), `stats ${window}`);
  const runners = useLive(() => call<{ runners?: Runner[] }>("Runners/List"), "runners");
  const attention = useLive(loadAttention, "attention");
  const sum = (name: "succeeded" | "failed" | "skipped" | "live") =>
    (stats.data?.names ?? []).reduce((total, one) => total + count(one[name]), 0);
  const groups = leaders.data?.leaders ?? [];
  const led = groups.filter((group) => group.leaderRunnerId);
  const alive = (runners.data?.runners ?? []).filter((runner) => runner.alive);
  const healthy = alive.filter((runner) => runner.healthy !== false);
  return (
    <>
      <div class="page-title">
        <h1>Overview</h1>
        <Select label="Time" value={window} options={WINDOWS} set={setWindow} />
      </div>
      <div class="tiles">
        <Tile
          label="Groups with a leader"
          value={leaders.data ? `${led.length} / ${groups.length}` : "–"}
          kind={leaders.data && led.length < groups.length ? "bad" : "good"}
          note={<Link to="/leadership">Leadership</Link>}
        />
        <Tile
          label="Healthy pods"
          value={runners.data ? `${healthy.length} / ${alive.length}` : "–"}
          kind={runners.data && healthy.length < alive.length ? "warn" : "good"}
          note={<Link to="/pods">Pods</Link>}
        />
        <Tile label="Succeeded" value={stats.data ? sum("succeeded") : "–"} kind="good" note={stats.data?.truncated ? "of the newest 20,000 runs" : ""} />
        <Tile
          label="Failed"
          value={stats.data ? sum("failed") : "–"}
          kind={sum("failed") ? "bad" : "good"}
          note={<Link to="/runs?outcome=OUTCOME_FAILED">Failed runs</Link>}
        />
        <Tile label="Not ended" value={stats.data ? sum("live") : "–"} note={<Link to="/runs?state=RUN_STATE_RUNNING">Running now</Link>} />
      </div>
      <Card title="Runs over time">
        <Loaded live={stats}>{(data) => <Outcomes buckets={data.buckets ?? []} label="Runs over time by outcome" />}</Loaded>
      </Card>
      <div class="columns">
        <Card title="Leaders">
          <Loaded live={leaders}>
            {(data) => (
              <Table
                label="Leaders"
                empty="No groups."
                rows={data.leaders ?? []}
                columns={[
                  { title: "Group", cell: (one) => <Name text={one.group} /> },
                  {
                    title: "Leader",
                    cell: (one) => (one.leaderRunnerId ? <Name text={one.leaderRunnerId} most={36} /> : <Badge kind="bad">no leader</Badge>),
                  },
                  { title: "", cell: (one) => (one.draining ? <Badge kind="warn">handing over</Badge> : one.isLeader ? <Badge kind="good">this pod</Badge> : null) },
                ]}
              />
            )}
          </Loaded>
        </Card>
        <Card title="Needs attention">
          <Loaded live={attention}>
            {(data) => (
              <Table
                label="Needs attention"
                empty="Nothing needs attention."
                rows={data}
                columns={[
                  { title: "What", cell: (one) => <Link to={one.to}><Name text={one.name} most={40} /></Link> },
                  { title: "Problem", cell: (one) => <span class="problem">{one.problem}</span> },
                ]}
              />
            )}
          </Loaded>
        </Card>
      </div>
      <RecentFailures />
    </>
  );
}

interface Attention {
  name: string;
  problem: string;
  to: string;
}

async function loadAttention(): Promise<Attention[]> {
  const [schedules, singletons] = await Promise.all([
    call<{ schedules?: Schedule[] }>("Schedules/List", { pageSize: 1000 }),
    call<{ singletons?: Singleton[] }>("Singletons/List", { pageSize: 1000 }),
  ]);
  const found: Attention[] = [];
  for (const one of [...(schedules.schedules ?? []), ...(singletons.singletons ?? [])]) {
    const to = `/runs?name=${encodeURIComponent(one.name)}`;
    if (one.stale) found.push({ name: one.name, problem: one.staleReason ?? "stale", to });
    else if (one.metadata?.lastError) found.push({ name: one.name, problem: `last run failed: ${short(visible(one.metadata.lastError), 120)}`, to });
    else if ("paused" in one && one.paused) found.push({ name: one.name, problem: `paused${one.pauseNote ? `: ${short(visible(one.pauseNote), 120)}` : ""}`, to: "/schedules?paused=true" });
  }
  return found.slice(0, 50);
}

function RecentFailures() {
  const runs = useLive(() => call<{ runs?: Run[] }>("Runs/List", { outcome: "OUTCOME_FAILED", pageSize: 8 }), "failures");
  return (
    <Card title="Latest failures" side={<Link to="/runs?outcome=OUTCOME_FAILED">All</Link>}>
      <Loaded live={runs}>
        {(data) => (
          <Table
            label="Latest failures"
            empty="No run has failed."
            rows={data.runs ?? []}
            columns={[
              { title: "Run", cell: (run) => <Link to={`/runs/${run.runId}`}><Name text={run.name} /></Link> },
              { title: "Outcome", cell: (run) => <RunBadge run={run} /> },
              { title: "Ended", cell: (run) => <When at={run.finishedAt} relative /> },
              { title: "Error", kind: "wide", cell: (run) => <Name text={run.error ?? ""} most={120} /> },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
