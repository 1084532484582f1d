// Text for people. Whatever comes from outside passes through `visible`.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Control and bidirectional characters as code points: text cannot pretend to be other text. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function short(text: string, most = 200): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

export function time(at: string | undefined): string {
  if (!at) return "–";
  const date = new Date(at);
  const day = date.toLocaleDateString("sv-SE");
  const clock = date.toLocaleTimeString("en-GB");
  return day === new Date().toLocaleDateString("sv-SE") ? clock : `${day} ${clock}`;
}

export function full(at: string | undefined): string {
  return at ? new Date(at).toISOString() : "";
}

export function span(ms: number): string {
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(size)} ms`;
  if (size < 60_000) return `${(size / 1000).toFixed(size < 10_000 ? 1 : 0)} s`;
  if (size < 3_600_000) return `${Math.floor(size / 60_000)} min ${Math.round((size % 60_000) / 1000)} s`;
  if (size < 86_400_000) return `${Math.floor(size / 3_600_000)} h ${Math.round((size % 3_600_000) / 60_000)} min`;
  return `${Math.floor(size / 86_400_000)} d ${Math.round((size % 86_400_000) / 3_600_000)} h`;
}

export function ago(at: string | undefined, now = Date.now()): string {
  if (!at) return "never";
  const ms = now - Date.parse(at);
  return ms >= 0 ? `${span(ms)} ago` : `in ${span(ms)}`;
}

/** A duration of protobuf's JSON mapping, such as `1.5s`, in milliseconds. */
export function milliseconds(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : Number.parseFloat(duration) * 1000;
}

export function length(duration: string | undefined): string {
  const ms = milliseconds(duration);
  return ms === undefined ? "–" : span(ms);
}

export function between(from: string | undefined, to: string | undefined): string {
  return from && to ? span(Date.parse(to) - Date.parse(from)) : "–";
}

/** `OUTCOME_FAILED` → `failed`. */
export function word(name: string | undefined, prefix: string): string {
  return (name ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
}

export function count(value: string | number | undefined): number {
  return Number(value ?? 0);
}

export function timing(schedule: { cron?: string; every?: string; at?: string; timezone?: string }): string {
  if (schedule.cron) {
    const zone = schedule.timezone && schedule.timezone !== "UTC" ? ` ${schedule.timezone}` : "";
    return `${schedule.cron}${zone}`;
  }
  if (schedule.every) return `every ${length(schedule.every)}`;
  return schedule.at ? `once, ${time(schedule.at)}` : "–";
}

/** Bytes in base64 as text, or their size if they are no text. */
export function bytes(value: string | undefined): string {
  if (!value) return "(empty)";
  const raw = Uint8Array.from(atob(value), (one) => one.charCodeAt(0));
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(raw);
    return short(visible(text).replaceAll("\\u000a", "\n"), 20_000);
  } catch {
    return `${raw.length} bytes that are not text`;
  }
}
