// The building blocks of all pages.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { ApiError, user } from "./api";
import { ago, full, short, time, visible } from "./format";
import { type Live, go } from "./state";

export function Link(props: { to: string; children: ComponentChildren; class?: string; current?: boolean }) {
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(props.to);
  };
  return (
    <a href={props.to} onClick={follow} class={props.class} aria-current={props.current ? "page" : undefined}>
      {props.children}
    </a>
  );
}

/** Text from outside: control characters shown, direction isolated, the whole of it on hover. */
export function Name(props: { text: string; most?: number }) {
  const whole = visible(props.text);
  return (
    <bdi class="name" title={whole.length > (props.most ?? 60) ? short(whole, 1000) : undefined}>
      {short(whole, props.most ?? 60)}
    </bdi>
  );
}

export function When(props: { at?: string; relative?: boolean }) {
  if (!props.at) return <span class="quiet">–</span>;
  return (
    <time dateTime={full(props.at)} title={full(props.at)}>
      {props.relative ? ago(props.at) : time(props.at)}
    </time>
  );
}

export function Badge(props: { kind: string; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge ${props.kind}`} title={props.title}>
      {props.children}
    </span>
  );
}

export function Tile(props: { label: string; value: ComponentChildren; kind?: string; note?: ComponentChildren }) {
  return (
    <div class={`tile ${props.kind ?? ""}`}>
      <div class="tile-label">{props.label}</div>
      <div class="tile-value">{props.value}</div>
      <div class="tile-note">{props.note}</div>
    </div>
  );
}

export function Card(props: { title: string; side?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="card">
      <header>
        <h2>{props.title}</h2>
        <div class="side">{props.side}</div>
      </header>
      {props.children}
    </section>
  );
}

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  kind?: "number" | "wide" | "less";
}

export function Table<T>(props: { columns: Column<T>[]; rows: T[]; empty: string; label: string }) {
  if (!props.rows.length) return <p class="empty">{props.empty}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={props.label}>
      <table>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th scope="col" class={column.kind}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr>
              {props.columns.map((column) => (
                <td class={column.kind}>{column.cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What a page shows while it waits, and what it says when the data is old. */
export function Loaded<T>(props: { live: Live<T>; children: (data: T) => ComponentChildren }) {
  const { data, error, at } = props.live;
  return (
    <>
      {error && <Problem error={error} at={at} again={props.live.again} />}
      {data !== undefined ? props.children(data) : !error && <p class="waiting">Loading …</p>}
    </>
  );
}

function Problem(props: { error: ApiError; at?: number; again: () => void }) {
  const { error, at } = props;
  const away = error.code === "unavailable" || error.code === "unreachable" || error.code === "deadline_exceeded";
  const since = at ? ` What you see is from ${new Date(at).toLocaleTimeString("en-GB")}.` : "";
  const title =
    error.code === "unreachable"
      ? "The sidecar does not answer."
      : away
        ? "Postgres is slow or away."
        : "This could not be loaded.";
  return (
    <div class={`banner ${away ? "warn" : "bad"}`} role="status">
      <strong>{title}</strong>
      <span>
        {away ? "Trying again every few seconds." : visible(short(error.message, 300))}
        {since}
      </span>
      <button type="button" onClick={props.again}>
        Try now
      </button>
    </div>
  );
}

export function Select(props: { label: string; value: string; options: [string, string][]; set: (value: string) => void }) {
  return (
    <label class="filter">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.set(event.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option value={value}>{text}</option>
        ))}
      </select>
    </label>
  );
}

export function Search(props: { label: string; value: string; set: (value: string) => void }) {
  return (
    <label class="filter">
      <span>{props.label}</span>
      <input type="search" value={props.value} onChange={(event) => props.set(event.currentTarget.value.trim())} />
    </label>
  );
}

export function Pager(props: { page: string; next?: string; set: (token: string) => void }) {
  if (!props.page && !props.next) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={!props.page} onClick={() => props.set("")}>
        First page
      </button>
      <button type="button" disabled={!props.next} onClick={() => props.set(props.next ?? "")}>
        Next page
      </button>
    </nav>
  );
}

interface ActionProps {
  label: string;
  question: string;
  note?: string; // the label of a text that goes with it
  danger?: boolean;
  run: (note: string) => Promise<string>;
  done?: () => void;
}

/** A button that asks once and does it; what happened is said by `Announcements`, which stay when the button goes. */
export function Action(props: ActionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [note, setNote] = useState("");
  const [who, setWho] = useState(user.get());
  const [busy, setBusy] = useState(false);
  const close = () => {
    dialog.current?.close();
    setNote("");
  };
  const open = () => {
    setWho(user.get()); // another action may have asked for it
    dialog.current?.showModal();
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    user.set(who.trim());
    try {
      announce(await props.run(note.trim()), true);
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error), false);
    }
    setBusy(false);
    close();
    props.done?.();
  };
  return (
    <>
      <button type="button" class={props.danger ? "danger" : ""} onClick={open}>
        {props.label}
      </button>
      <dialog ref={dialog} aria-label={props.label}>
        <form onSubmit={submit}>
          <p>{props.question}</p>
          {props.note && (
            <label>
              {props.note}
              <input value={note} maxLength={200} onInput={(event) => setNote(event.currentTarget.value)} />
            </label>
          )}
          <label>
            Your name, for the log
            <input value={who} maxLength={60} onInput={(event) => setWho(event.currentTarget.value)} />
          </label>
          <div class="buttons">
            <button type="button" onClick={close}>
              Do nothing
            </button>
            <button type="submit" class={props.danger ? "danger solid" : "solid"} disabled={busy}>
              {busy ? "Working …" : props.label}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}

interface Announcement {
  text: string;
  ok: boolean;
}

let announced: Announcement[] = [];
let announce: (text: string, ok: boolean) => void = () => undefined;

/** What the last actions did, until somebody has read it. */
export function Announcements() {
  const [, redraw] = useState(0);
  announce = (text, ok) => {
    announced = [...announced.slice(-3), { text, ok }];
    redraw((n) => n + 1);
  };
  const dismiss = (one: Announcement) => {
    announced = announced.filter((other) => other !== one);
    redraw((n) => n + 1);
  };
  return (
    <div class="announcements" role="status" aria-live="polite">
      {announced.map((one) => (
        <div class={`announcement ${one.ok ? "" : "failed"}`}>
          <span>{visible(short(one.text, 500))}</span>
          <button type="button" class="small" onClick={() => dismiss(one)}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}
