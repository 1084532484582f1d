import { type Runner, call } from "../api";
import { Badge, Card, Loaded, Name, Table, When } from "../parts";
import { useLive } from "../state";

function Health(props: { runner: Runner }) {
  const { runner } = props;
  if (!runner.alive) return <Badge kind="bad">not seen</Badge>;
  if (runner.healthy === false) return <Badge kind="bad">app unhealthy</Badge>;
  return runner.campaigning ? <Badge kind="good">healthy</Badge> : <Badge kind="warn">not campaigning</Badge>;
}

export function Pods() {
  const runners = useLive(() => call<{ runners?: Runner[] }>("Runners/List", { pageSize: 1000 }), "pods");
  return (
    <>
      <div class="page-title">
        <h1>Pods</h1>
      </div>
      <Card title="Sidecars seen within the last hour">
        <Loaded live={runners}>
          {(data) => (
            <Table
              label="Pods"
              empty="No pod has joined yet."
              rows={data.runners ?? []}
              columns={[
                { title: "Runner", cell: (one) => <><Name text={one.runnerId} most={48} /> {one.self && <Badge kind="info">this pod</Badge>}</> },
                { title: "Host", kind: "less", cell: (one) => <Name text={one.host} most={40} /> },
                { title: "State", cell: (one) => <Health runner={one} /> },
                { title: "Leads", cell: (one) => (one.leads?.length ? one.leads.map((group) => <Badge kind="good"><Name text={group} most={24} /></Badge>) : <span class="quiet">nothing</span>) },
                { title: "Version", cell: (one) => <Name text={one.version} /> },
                { title: "Config", kind: "number", cell: (one) => one.configRevision ?? "0" },
                { title: "Started", cell: (one) => <When at={one.startedAt} relative /> },
                { title: "Seen", cell: (one) => <When at={one.seenAt} relative /> },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </>
  );
}
