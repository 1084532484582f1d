import { type Leader, type Term, call } from "../api";
import { type Stretch, Lanes } from "../charts";
import { ago, between, span, time } from "../format";
import { Action, Badge, Card, Loaded, Name, Pager, Select, Table, When } from "../parts";
import { useFilter, useLive } from "../state";

const SPANS: [string, string][] = [
  ["900", "last 15 minutes"],
  ["", "last hour"],
  ["21600", "last 6 hours"],
  ["86400", "last 24 hours"],
  ["604800", "last 7 days"],
];
const REASONS: Record<string, [string, string]> = {
  lost: ["bad", "lost: crashed, frozen or cut off"],
  resigned: ["quiet-badge", "resigned"],
  shutdown: ["quiet-badge", "shut down"],
  stale: ["warn", "stale"],
  app_unhealthy: ["warn", "app unhealthy"],
  lease_lost: ["bad", "lease lost"],
  fenced: ["bad", "fenced"],
};

function Reason(props: { term: Term }) {
  if (!props.term.endedAt) return <Badge kind="good">open</Badge>;
  const [kind, text] = REASONS[props.term.endReason ?? ""] ?? ["quiet-badge", props.term.endReason ?? "ended"];
  return <Badge kind={kind}>{text}</Badge>;
}

export function Leadership(props: { operate: boolean }) {
  const [group, setGroup] = useFilter("group");
  const [seconds, setSeconds] = useFilter("span");
  const [page, setPage] = useFilter("page");
  const leaders = useLive(() => call<{ leaders?: Leader[] }>("Leadership/List", { pageSize: 1000 }), "leaders");
  const terms = useLive(
    () => call<{ terms?: Term[]; nextPageToken?: string }>("Leadership/History", { group, pageSize: 200, pageToken: page }),
    `${group} ${page}`,
  );
  const groups = (leaders.data?.leaders ?? []).map((one) => one.group);
  const open = new Map((leaders.data?.leaders ?? []).map((one) => [one.group, one]));
  return (
    <>
      <div class="page-title">
        <h1>Leadership</h1>
      </div>
      <div class="filters">
        <Select label="Group" value={group} set={setGroup} options={[["", "all"], ...groups.map((one): [string, string] => [one, one])]} />
        <Select label="Time" value={seconds} set={setSeconds} options={SPANS} />
      </div>
      <Card title="Now">
        <Loaded live={leaders}>
          {(data) => (
            <Table
              label="Leaders now"
              empty="No groups."
              rows={(data.leaders ?? []).filter((one) => !group || one.group === group)}
              columns={[
                { title: "Group", cell: (one) => <Name text={one.group} /> },
                { title: "Leader", cell: (one) => (one.leaderRunnerId ? <Name text={one.leaderRunnerId} most={48} /> : <Badge kind="bad">no leader</Badge>) },
                { title: "Epoch", kind: "number", cell: (one) => one.epoch ?? "–" },
                { title: "", cell: (one) => (one.draining ? <Badge kind="warn">handing over</Badge> : null) },
                ...(props.operate
                  ? [{
                      title: "",
                      cell: (one: Leader) => (
                        <Action
                          label="Hand over"
                          danger
                          question={`Ask the leader of ${one.group} to hand over? Runs may end within the drain time; another pod takes over.`}
                          run={async () => {
                            await call("Leadership/Resign", { group: one.group });
                            return "The leader is asked to hand over.";
                          }}
                          done={leaders.again}
                        />
                      ),
                    }]
                  : []),
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Loaded live={terms}>
        {(data) => (
          <>
            <Card title="Over time">
              <Timeline terms={data.terms ?? []} seconds={Number(seconds || 3600)} known={open} />
            </Card>
            <Card title="Terms">
              <Table
                label="Terms"
                empty="No terms are remembered yet."
                rows={withGaps(data.terms ?? [])}
                columns={[
                  { title: "Group", cell: ([term]) => <Name text={term.group} /> },
                  { title: "Epoch", kind: "number", cell: ([term]) => term.epoch },
                  { title: "Pod", cell: ([term]) => <Name text={term.runnerId} most={40} /> },
                  { title: "Taken", cell: ([term]) => <When at={term.takenAt} /> },
                  { title: "Led for", kind: "number", cell: ([term]) => (term.endedAt ? between(term.takenAt, term.endedAt) : ago(term.takenAt).replace(" ago", "")) },
                  { title: "End", cell: ([term]) => <Reason term={term} /> },
                  { title: "Without leader before", kind: "number", cell: ([, gap]) => (gap === undefined ? "–" : gap < 1 ? "none" : span(gap)) },
                ]}
              />
              <Pager page={page} next={data.nextPageToken} set={setPage} />
              <p class="quiet">The end of a lost term is when its successor took over. Before it leads, a successor of a lost term waits for the grace period.</p>
            </Card>
          </>
        )}
      </Loaded>
    </>
  );
}

/** Each term with the time between its predecessor's end and its takeover; terms are newest first. */
function withGaps(terms: Term[]): [Term, number | undefined][] {
  return terms.map((term, n) => {
    const before = terms.slice(n + 1).find((other) => other.group === term.group);
    const gap = before?.endedAt ? Date.parse(term.takenAt) - Date.parse(before.endedAt) : undefined;
    return [term, gap === undefined ? undefined : Math.max(0, gap)];
  });
}

function Timeline(props: { terms: Term[]; seconds: number; known: Map<string, Leader> }) {
  const to = Date.now();
  const from = to - props.seconds * 1000;
  const colours = new Map<string, number>();
  const stretches: Stretch[] = [];
  const gaps: Stretch[] = [];
  for (const [term, gap] of withGaps(props.terms).reverse()) {
    if (!colours.has(term.runnerId)) colours.set(term.runnerId, colours.size % 6);
    const began = Date.parse(term.takenAt);
    const ended = term.endedAt ? Date.parse(term.endedAt) : to;
    const why = term.endedAt ? `ended ${time(term.endedAt)}, ${term.endReason}` : "open";
    stretches.push({ lane: term.group, from: began, to: ended, kind: `pod-${colours.get(term.runnerId)}`, title: `${term.runnerId}, epoch ${term.epoch}, from ${time(term.takenAt)}, ${why}` });
    if (gap && gap >= 1000) gaps.push({ lane: term.group, from: began - gap, to: began, kind: "failed", title: `no leader for ${span(gap)}` });
    if (term.endReason === "lost") gaps.push({ lane: term.group, from: ended, to: ended, kind: "failed", title: `lost: ${term.runnerId} crashed, froze or was cut off` });
  }
  const shown = [...stretches, ...gaps].filter((one) => one.to >= from);
  if (!shown.length) return <p class="empty">No term in this time.</p>;
  return (
    <>
      <Lanes stretches={shown} from={from} to={to} label="Leadership over time" ends={[time(new Date(from).toISOString()), "now"]} />
      <div class="legend wrap">
        {[...colours].slice(-12).map(([pod, colour]) => (
          <span>
            <i class={`dot fill-pod-${colour}`} /> <Name text={pod} most={32} />
          </span>
        ))}
        <span><i class="dot fill-failed" /> lost, or no leader</span>
      </div>
    </>
  );
}
