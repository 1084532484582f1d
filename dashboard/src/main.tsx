// The frame around the pages: navigation, token, pause.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type About, about, call, token } from "./api";
import { Announcements, Link, Name } from "./parts";
import { Leadership } from "./pages/leadership";
import { Overview } from "./pages/overview";
import { Pods } from "./pages/pods";
import { RunPage } from "./pages/run";
import { Runs } from "./pages/runs";
import { Schedules } from "./pages/schedules";
import { State } from "./pages/state";
import { usePaused, usePlace } from "./state";

const PAGES: [string, string][] = [
  ["/", "Overview"],
  ["/runs", "Runs"],
  ["/schedules", "Schedules"],
  ["/leadership", "Leadership"],
  ["/pods", "Pods"],
  ["/state", "State"],
];

function page(path: string, operate: boolean) {
  const run = /^\/runs\/(\d{1,20})$/.exec(path);
  if (run?.[1]) return <RunPage id={run[1]} operate={operate} />;
  switch (path) {
    case "/":
      return <Overview />;
    case "/runs":
      return <Runs />;
    case "/schedules":
      return <Schedules operate={operate} />;
    case "/leadership":
      return <Leadership operate={operate} />;
    case "/pods":
      return <Pods />;
    case "/state":
      return <State />;
    default:
      return <p class="empty">There is no such page.</p>;
  }
}

function Login(props: { done: () => void }) {
  const [value, set] = useState("");
  const [problem, setProblem] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    token.set(value.trim());
    try {
      await call("Leadership/List", { pageSize: 1 });
      props.done();
    } catch (error) {
      token.set("");
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <main class="login">
      <form onSubmit={submit} class="card">
        <h1>Baton</h1>
        <p>This sidecar asks for the token of its API. It is kept for this tab only.</p>
        <label>
          Token
          <input type="password" autocomplete="off" value={value} onInput={(event) => set(event.currentTarget.value)} />
        </label>
        {problem && (
          <p class="bad-text" role="alert">
            {problem}
          </p>
        )}
        <button class="solid" type="submit">
          Continue
        </button>
      </form>
    </main>
  );
}

function App(props: { about: About }) {
  const place = usePlace();
  const [paused, toggle] = usePaused();
  const [entered, setEntered] = useState(!props.about.token || token.get() !== "");
  useEffect(() => {
    const top = PAGES.find(([path]) => path !== "/" && place.pathname.startsWith(path)) ?? PAGES[0];
    document.title = `${top?.[1]} · ${props.about.cluster} · Baton`;
  }, [place.pathname]);
  if (!entered) return <Login done={() => setEntered(true)} />;
  const current = (path: string) => (path === "/" ? place.pathname === "/" : place.pathname.startsWith(path));
  const operate = props.about.dashboard === "operate";
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <Link to="/" class="brand">
          <img src="/icon.svg" alt="" width={28} height={28} />
          <span>
            Baton <small>{<Name text={props.about.cluster} most={40} />}</small>
          </span>
        </Link>
        <nav aria-label="Pages">
          {PAGES.map(([path, title]) => (
            <Link to={path} current={current(path)}>
              {title}
            </Link>
          ))}
        </nav>
        <div class="top-side">
          {!operate && <span class="badge quiet-badge">read only</span>}
          <button type="button" class="small live" aria-pressed={paused} onClick={toggle}>
            <i class={`dot ${paused ? "fill-skipped" : "fill-succeeded pulse"}`} /> {paused ? "Paused" : "Live"}
          </button>
        </div>
      </header>
      <main id="content">{page(place.pathname, operate)}</main>
      <Announcements />
      <footer>Baton {props.about.version} · <a href="/openapi.json">API</a></footer>
    </>
  );
}

const root = document.getElementById("app");
if (root) {
  about().then(
    (known) => {
      root.replaceChildren();
      render(<App about={known} />, root);
    },
    () => {
      root.textContent = "The sidecar does not answer. Reload the page to try again.";
    },
  );
}
