import { type NameStats, type Schedule, type Stats, call } from "../api";
import { type Stretch, Lanes } from "../charts";
import { count, length, time, timing } from "../format";
import { Action, Badge, Card, Link, Loaded, Name, Pager, Search, Select, Table, When } from "../parts";
import { useFilter, useLive } from "../state";
import { WINDOWS } from "./overview";

interface Listed {
  schedules: Schedule[];
  next?: string;
  stats: Map<string, NameStats>;
}

export function Schedules(props: { operate: boolean }) {
  const [prefix, setPrefix] = useFilter("prefix");
  const [paused, setPaused] = useFilter("paused");
  const [window, setWindow] = useFilter("window");
  const [page, setPage] = useFilter("page");
  const asked = { namePrefix: prefix, pageSize: 50, pageToken: page, ...(paused ? { paused: paused === "true" } : {}) };
  const load = async (): Promise<Listed> => {
    const [list, stats] = await Promise.all([
      call<{ schedules?: Schedule[]; nextPageToken?: string }>("Schedules/List", asked),
      call<Stats>("Runs/Stats", window ? { window } : {}),
    ]);
    const byName = new Map((stats.names ?? []).map((one) => [one.name, one]));
    return { schedules: list.schedules ?? [], next: list.nextPageToken, stats: byName };
  };
  const live = useLive(load, JSON.stringify([asked, window]));
  return (
    <>
      <div class="page-title">
        <h1>Schedules</h1>
      </div>
      <div class="filters">
        <Search label="Name starts with" value={prefix} set={setPrefix} />
        <Select label="Paused" value={paused} set={setPaused} options={[["", "any"], ["true", "paused"], ["false", "not paused"]]} />
        <Select label="Figures of the" value={window} set={setWindow} options={WINDOWS} />
      </div>
      <Loaded live={live}>
        {(data) => (
          <>
            <Card title="Schedules">
              <Table
                label="Schedules"
                empty="No schedule fits these filters."
                rows={data.schedules}
                columns={[
                  { title: "Name", cell: (one) => <Link to={`/runs?name=${encodeURIComponent(one.name)}`}><Name text={one.name} most={40} /></Link> },
                  { title: "Runs", cell: (one) => <code><Name text={timing(one)} most={40} /></code> },
                  { title: "State", cell: (one) => <ScheduleBadge schedule={one} /> },
                  { title: "Next", cell: (one) => <When at={one.nextRunAt} relative /> },
                  { title: "Last", kind: "less", cell: (one) => <When at={one.lastRunAt} relative /> },
                  { title: "Succeeded", kind: "number", cell: (one) => count(data.stats.get(one.name)?.succeeded) },
                  { title: "Failed", kind: "number", cell: (one) => <Failed stats={data.stats.get(one.name)} /> },
                  { title: "Late, p95", kind: "number", cell: (one) => length(data.stats.get(one.name)?.lateness?.p95) },
                  { title: "Took, p95", kind: "number", cell: (one) => length(data.stats.get(one.name)?.durations?.p95) },
                  ...(props.operate ? [{ title: "", cell: (one: Schedule) => <Actions schedule={one} done={live.again} /> }] : []),
                ]}
              />
              <Pager page={page} next={data.next} set={setPage} />
            </Card>
            <Upcoming schedules={data.schedules} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Failed(props: { stats?: NameStats }) {
  const failed = count(props.stats?.failed);
  return failed ? <strong class="bad-text">{failed}</strong> : <>0</>;
}

function ScheduleBadge(props: { schedule: Schedule }) {
  const { schedule } = props;
  if (schedule.retiredAt) return <Badge kind="quiet-badge">retired</Badge>;
  if (schedule.paused) return <Badge kind="warn" title={schedule.pauseNote}>paused</Badge>;
  if (schedule.stale) return <Badge kind="bad" title={schedule.staleReason}>stale</Badge>;
  if (!schedule.enabled) return <Badge kind="quiet-badge">disabled</Badge>;
  return <Badge kind="good">active</Badge>;
}

function Actions(props: { schedule: Schedule; done: () => void }) {
  const { name, paused } = props.schedule;
  return (
    <div class="actions">
      <Action
        label="Trigger"
        question={`Run ${name} once, now, in addition to its ticks?`}
        run={async () => `Queued as run ${(await call<{ runId: string }>("Schedules/Trigger", { name, requestId: crypto.randomUUID() })).runId}.`}
        done={props.done}
      />
      {paused ? (
        <Action
          key="resume"
          label="Resume"
          question={`Resume ${name}? Ticks that were skipped stay skipped.`}
          run={async () => {
            await call("Schedules/Resume", { name });
            return `${name} is resumed.`;
          }}
          done={props.done}
        />
      ) : (
        <Action
          key="pause"
          label="Pause"
          question={`Pause ${name}? Its ticks are recorded as skipped until it is resumed.`}
          note="Why, for whoever finds it paused"
          run={async (note) => {
            await call("Schedules/Pause", { name, note });
            return `${name} is paused.`;
          }}
          done={props.done}
        />
      )}
    </div>
  );
}

const DAY_MS = 86_400_000;
const PREVIEWED = 12;

/** The ticks of the next 24 hours, of the first schedules of the page. */
function Upcoming(props: { schedules: Schedule[] }) {
  const active = props.schedules.filter((one) => one.nextRunAt && !one.paused).slice(0, PREVIEWED);
  const key = active.map((one) => one.name).join();
  const ticks = useLive(async () => {
    const answers = await Promise.all(active.map((one) => call<{ ticks?: string[] }>("Schedules/Preview", { name: one.name, n: 200 })));
    const now = Date.now();
    const found: Stretch[] = [];
    answers.forEach((answer, n) => {
      for (const tick of answer.ticks ?? []) {
        const at = Date.parse(tick);
        if (at < now + DAY_MS) found.push({ lane: active[n]?.name ?? "", from: at, to: at, kind: "step", title: time(tick) });
      }
    });
    return { found, now };
  }, key);
  return (
    <Card title="Next 24 hours" side={<span class="quiet">the first {PREVIEWED} of this page, up to 200 ticks each</span>}>
      <Loaded live={ticks}>
        {(data) =>
          data.found.length ? (
            <Lanes stretches={data.found} from={data.now} to={data.now + DAY_MS} label="Ticks of the next 24 hours" ends={["now", "in 24 h"]} />
          ) : (
            <p class="empty">No ticks in the next 24 hours.</p>
          )
        }
      </Loaded>
    </Card>
  );
}
