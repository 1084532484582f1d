import { useState } from "preact/hooks";
import { type Entry, call } from "../api";
import { bytes } from "../format";
import { Card, Loaded, Name, Pager, Search, Table, When } from "../parts";
import { useFilter, useLive } from "../state";

export function State() {
  const [prefix, setPrefix] = useFilter("prefix");
  const [page, setPage] = useFilter("page");
  const keys = useLive(
    () => call<{ entries?: Entry[]; nextPageToken?: string }>("State/List", { prefix, pageSize: 100, pageToken: page, keysOnly: true }),
    `${prefix} ${page}`,
  );
  return (
    <>
      <div class="page-title">
        <h1>State</h1>
      </div>
      <div class="filters">
        <Search label="Key starts with" value={prefix} set={setPrefix} />
      </div>
      <Card title="Keys" side={<span class="quiet">values are hidden until you ask for one</span>}>
        <Loaded live={keys}>
          {(data) => (
            <>
              <Table
                label="Keys"
                empty="No key starts with this."
                rows={data.entries ?? []}
                columns={[
                  { title: "Key", cell: (one) => <Name text={one.key} most={80} /> },
                  { title: "Version", kind: "number", cell: (one) => one.version },
                  { title: "Written", cell: (one) => <When at={one.updatedAt} relative /> },
                  { title: "Expires", cell: (one) => <When at={one.expiresAt} relative /> },
                  { title: "Value", kind: "wide", cell: (one) => <Value key={one.key} name={one.key} /> },
                ]}
              />
              <Pager page={page} next={data.nextPageToken} set={setPage} />
            </>
          )}
        </Loaded>
      </Card>
    </>
  );
}

function Value(props: { name: string }) {
  const [shown, set] = useState<string>();
  const show = async () => {
    try {
      set(bytes((await call<{ entry: Entry }>("State/Get", { key: props.name })).entry.value));
    } catch (error) {
      set(error instanceof Error ? error.message : String(error));
    }
  };
  if (shown === undefined) {
    return (
      <button type="button" class="small" onClick={show}>
        Show
      </button>
    );
  }
  return (
    <>
      <button type="button" class="small" onClick={() => set(undefined)}>
        Hide
      </button>
      <pre>{shown}</pre>
    </>
  );
}
