// Hooks: the address bar as state, and live data that can be paused.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";

const MOVED = "baton-moved";
export const REFRESH_MS = 3000;

export function go(to: string): void {
  history.pushState(null, "", to);
  dispatchEvent(new Event(MOVED));
}

export function usePlace(): URL {
  const [place, set] = useState(() => new URL(location.href));
  useEffect(() => {
    const moved = () => set(new URL(location.href));
    addEventListener("popstate", moved);
    addEventListener(MOVED, moved);
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener(MOVED, moved);
    };
  }, []);
  return place;
}

/** One filter of the page: it lives in the address. */
export function useFilter(name: string): [string, (value: string) => void] {
  const place = usePlace();
  const set = useCallback(
    (value: string) => {
      const next = new URL(location.href);
      if (value) next.searchParams.set(name, value);
      else next.searchParams.delete(name);
      if (name !== "page") next.searchParams.delete("page");
      go(next.pathname + next.search);
    },
    [name],
  );
  return [place.searchParams.get(name) ?? "", set];
}

let paused = false;
const listeners = new Set<() => void>();

export function usePaused(): [boolean, () => void] {
  const [, redraw] = useState(0);
  useEffect(() => {
    const changed = () => redraw((n) => n + 1);
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  const toggle = useCallback(() => {
    paused = !paused;
    listeners.forEach((tell) => tell());
  }, []);
  return [paused, toggle];
}

export interface Live<T> {
  data?: T;
  error?: ApiError;
  at?: number;
  again: () => void;
}

/** Loads now and every few seconds; after a failure the last data stays, with the error beside it. */
export function useLive<T>(load: () => Promise<T>, key: string): Live<T> {
  const [shown, set] = useState<{ key: string; data?: T; error?: ApiError; at?: number }>({ key });
  const [pausedNow] = usePaused();
  const latest = useRef(load);
  latest.current = load;
  const once = useCallback(async () => {
    try {
      const data = await latest.current();
      set({ key, data, at: Date.now() });
    } catch (error) {
      const problem = error instanceof ApiError ? error : new ApiError("unknown", String(error));
      set((before) => (before.key === key ? { ...before, error: problem } : { key, error: problem }));
    }
  }, [key]);
  useEffect(() => {
    let timer = 0;
    let ended = false;
    const loop = async () => {
      if (!document.hidden) await once();
      if (!ended && !pausedNow) timer = window.setTimeout(loop, REFRESH_MS);
    };
    void loop();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [once, pausedNow]);
  const current = shown.key === key ? shown : { key };
  return { data: current.data, error: current.error, at: current.at, again: () => void once() };
}
