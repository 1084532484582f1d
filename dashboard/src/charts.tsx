// Charts in SVG, each with a table that says the same.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Bucket } from "./api";
import { count, span, time } from "./format";
import { Name, Table } from "./parts";

function Twin(props: { label: string; chart: ComponentChildren; table: ComponentChildren }) {
  const [asTable, set] = useState(false);
  return (
    <figure class="chart">
      <button type="button" class="small" aria-pressed={asTable} onClick={() => set(!asTable)}>
        {asTable ? "Show as chart" : "Show as table"}
      </button>
      {asTable ? props.table : props.chart}
      <figcaption class="visually-hidden">{props.label}</figcaption>
    </figure>
  );
}

const SERIES = ["succeeded", "skipped", "live", "failed"] as const;

/** Runs over time, stacked by outcome. */
export function Outcomes(props: { buckets: Bucket[]; label: string }) {
  const { buckets } = props;
  const total = (bucket: Bucket) => SERIES.reduce((sum, name) => sum + count(bucket[name]), 0);
  const most = Math.max(1, ...buckets.map(total));
  const width = 960 / Math.max(1, buckets.length);
  const chart = (
    <>
      <svg viewBox="0 0 960 140" role="img" aria-label={props.label} preserveAspectRatio="none" class="bars">
        {buckets.map((bucket, n) => {
          let top = 136;
          return (
            <g>
              <title>{`${time(bucket.start)}: ${SERIES.map((name) => `${count(bucket[name])} ${name}`).join(", ")}`}</title>
              <rect x={n * width} y={0} width={width} height={140} class="hover" />
              {SERIES.map((name) => {
                const value = count(bucket[name]);
                const height = value ? Math.max(2, (value / most) * 128) : 0;
                top -= height;
                return <rect x={n * width + 1.5} y={top} width={Math.max(1, width - 3)} height={height} class={`fill-${name}`} rx={1.5} />;
              })}
            </g>
          );
        })}
        <line x1={0} x2={960} y1={137} y2={137} class="axis" />
      </svg>
      <div class="axis-labels">
        <span>{time(buckets[0]?.start)}</span>
        <span class="legend">
          {SERIES.map((name) => (
            <span>
              <i class={`dot fill-${name}`} /> {name}
            </span>
          ))}
          <span class="quiet">most: {most}</span>
        </span>
        <span>now</span>
      </div>
    </>
  );
  const table = (
    <Table
      label={props.label}
      empty="No runs."
      rows={buckets.filter(total)}
      columns={[
        { title: "From", cell: (bucket) => time(bucket.start) },
        ...SERIES.map((name) => ({ title: name, kind: "number" as const, cell: (bucket: Bucket) => count(bucket[name]) })),
      ]}
    />
  );
  return <Twin label={props.label} chart={chart} table={table} />;
}

export interface Stretch {
  lane: string;
  from: number;
  to: number;
  kind: string;
  title: string;
}

/** Stretches of time in lanes: terms, attempts, steps. */
export function Lanes(props: { stretches: Stretch[]; from: number; to: number; label: string; ends: [string, string] }) {
  const lanes = [...new Set(props.stretches.map((one) => one.lane))];
  const scale = 1000 / Math.max(1, props.to - props.from);
  const x = (at: number) => Math.min(1000, Math.max(0, (at - props.from) * scale));
  const chart = (
    <div class="lanes">
      {lanes.map((lane) => (
        <div class="lane">
          <div class="lane-name">
            <Name text={lane} most={32} />
          </div>
          <svg viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label={`${props.label}: ${lane}`}>
            <rect x={0} y={0} width={1000} height={24} class="lane-back" />
            {props.stretches
              .filter((one) => one.lane === lane && one.to >= props.from)
              .map((one) => (
                <rect x={x(one.from)} y={3} width={Math.max(3, x(one.to) - x(one.from))} height={18} rx={2} class={`fill-${one.kind}`}>
                  <title>{one.title}</title>
                </rect>
              ))}
          </svg>
        </div>
      ))}
      <div class="lane">
        <div class="lane-name" />
        <div class="axis-labels">
          <span>{props.ends[0]}</span>
          <span>{props.ends[1]}</span>
        </div>
      </div>
    </div>
  );
  const table = (
    <Table
      label={props.label}
      empty="Nothing to show."
      rows={props.stretches}
      columns={[
        { title: "What", cell: (one) => <Name text={one.lane} /> },
        { title: "From", cell: (one) => time(new Date(one.from).toISOString()) },
        { title: "To", cell: (one) => time(new Date(one.to).toISOString()) },
        { title: "Length", kind: "number", cell: (one) => span(one.to - one.from) },
        { title: "Details", cell: (one) => <Name text={one.title} most={120} /> },
      ]}
    />
  );
  return <Twin label={props.label} chart={chart} table={table} />;
}
