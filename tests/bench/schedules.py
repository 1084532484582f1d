"""Schedules and runs: what a tick costs, alone, by the thousand, and beside a long history.

    burst      1,000 ticks due in one second, against the same gRPC calls alone, by turns
    lateness   single ticks, from their due time to the arrival in the app, beside a bare process
    history    claim and completion beside a million rows, against an empty table
    many       10,000 schedules in one cluster, against one: start, memory, idle CPU

Real processes but for `history`; both sides of a ratio are measured in one run. Run alone:
`python -m tests.bench.schedules [burst lateness history many]`.
"""

import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import grpc
import psycopg
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from devtools.servers import PostgresServer, free_port, postgres_binaries
from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc, runs_pb2
from sidecar.adapters.cluster_context import context_metadata
from sidecar.adapters.convert import timestamp
from sidecar.model.definitions import Schedule
from sidecar.model.run import Outcome
from sidecar.model.run_records import Completion
from sidecar.model.verdict import Verdict
from tests.integration.runs_lab import laboratory
from tests.lab.processes import Child, boottime, wait_until

BURST = 1000
ROUNDS = 3
CALLS_AT_ONCE = 64  # as app.max_concurrent
LATENESS_TICKS = 120
HISTORY_ROWS = 1_000_000
MANY = 10_000
IDLE_SECONDS = 45.0
SETTINGS: dict[str, str | int] = {}


def run() -> list[dict[str, Any]]:
    """The rows of the report."""
    return [row for bench in BENCHES.values() for row in bench()]


# ── the app ─────────────────────────────────────────────────────────────────────────────────────


class App(callback_pb2_grpc.AppCallbackServicer):
    """Notes when each Execute arrived and does nothing else."""

    def __init__(self) -> None:
        self.arrivals: list[tuple[float, str, float]] = []

    async def OnBecomeLeader(self, request: Any, context: Any) -> Any:
        return callback_pb2.OnBecomeLeaderResponse()

    async def OnLoseLeadership(self, request: Any, context: Any) -> Any:
        return callback_pb2.OnLoseLeadershipResponse()

    async def Execute(self, request: Any, context: Any) -> Any:
        due = request.scheduled_at.seconds + request.scheduled_at.nanos / 1e9
        self.arrivals.append((time.time(), request.name, due))
        return callback_pb2.ExecuteResponse()


class Healthy(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    async def Check(self, request: Any, context: Any) -> Any:
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


async def serve(address: str, arrivals: Path) -> None:
    """Serve until killed; SIGUSR1 writes the arrivals to a file and forgets them."""
    app, server = App(), grpc.aio.server()
    callback_pb2_grpc.add_AppCallbackServicer_to_server(app, server)
    health_pb2_grpc.add_HealthServicer_to_server(Healthy(), server)
    server.add_insecure_port(address)

    def tell() -> None:
        found, app.arrivals = app.arrivals, []
        part = arrivals.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.rename(arrivals)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell)
    await server.start()
    await server.wait_for_termination()


# ── one pod ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Pod:
    """The app above and the real sidecar beside it, with no proxy in between."""

    directory: Path
    url: str
    app: Child
    sidecar: Child
    app_address: str
    http_port: int

    @classmethod
    @contextmanager
    def on(cls, url: str, schedules: list[dict[str, Any]]) -> Iterator["Pod"]:
        with tempfile.TemporaryDirectory() as place:
            directory = Path(place)
            address, port = f"127.0.0.1:{free_port()}", free_port()
            config = {
                "cluster": "bench",
                "app": {"address": address},
                "api": {"address": f"127.0.0.1:{free_port()}"},
                "http": {"address": f"127.0.0.1:{port}"},
                "postgres": {"url": url},
                "schedules": schedules,
            }
            (directory / "baton.yaml").write_text(yaml.safe_dump(config))
            app = [sys.executable, "-m", "tests.bench.schedules", "app", address]
            sidecar = [sys.executable, "-m", "sidecar", "run", "--config"]
            pod = cls(
                directory,
                url,
                Child([*app, directory / "arrivals.json"], directory / "app.log"),
                Child([*sidecar, directory / "baton.yaml"], directory / "sidecar.log"),
                address,
                port,
            )
            with pod.app:
                wait_until(pod._app_serves, 30, "the app")
                with pod.sidecar:
                    yield pod
                    pod.sidecar.terminate()  # a clean end: the next one need not wait its grace
                    assert pod.sidecar.wait() == 0

    def _app_serves(self) -> bool:
        with grpc.insecure_channel(self.app_address) as channel:
            try:
                health_pb2_grpc.HealthStub(channel).Check(
                    health_pb2.HealthCheckRequest(), timeout=1
                )
            except grpc.RpcError:
                return False
        return True

    def query(self, text: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(text.encode()).fetchone()
            return row[0] if row else None

    def wait_for(self, text: str, wanted: object, seconds: float = 60) -> None:
        """Until the query gives that."""

        def found() -> bool:
            try:
                return bool(self.query(text) == wanted)
            except psycopg.errors.UndefinedTable:
                return False

        wait_until(found, seconds, lambda: f"{text} = {wanted}\n{self.sidecar.output[-2000:]}")

    def arrivals(self) -> list[tuple[float, str, float]]:
        """What arrived since the last time."""
        file = self.directory / "arrivals.json"
        file.unlink(missing_ok=True)
        os.kill(self.app.pid, signal.SIGUSR1)
        wait_until(file.exists, 30, "the arrivals")
        return [(at, name, due) for at, name, due in json.loads(file.read_text())]


@contextmanager
def _postgres() -> Iterator[str]:
    with PostgresServer(postgres_binaries("auto"), SETTINGS) as server:
        yield server.url


# ── a thousand ticks in one second ──────────────────────────────────────────────────────────────


def burst() -> list[dict[str, Any]]:
    """From the due time to the last arrival; the peer from the first call to the last arrival."""
    ours: list[float] = []
    peer: list[float] = []
    with _postgres() as url:
        for number in range(ROUNDS):
            due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)
            cron = f"{due.second} {due.minute} {due.hour} * * *"
            names = [f"r{number}-{n:04}" for n in range(BURST)]
            with Pod.on(url, [{"name": name, "cron": cron} for name in names]) as pod:
                standing = "SELECT count(*) FROM baton.schedule WHERE retired_at IS NULL"
                pod.wait_for(standing, BURST)
                time.sleep(max(0.0, due.timestamp() - 4 - time.time()))
                peer.append(_calls_alone(pod, names))
                # Nobody looks meanwhile: each look is a connection, and would be measured too.
                time.sleep(max(0.0, due.timestamp() + 3 - time.time()))
                ended = "SELECT count(*) FROM baton.run WHERE outcome = 'succeeded'"
                pod.wait_for(ended, BURST * (number + 1))
                arrived = pod.arrivals()
                assert len(arrived) == BURST
                ours.append(max(at for at, _, _ in arrived) - due.timestamp())
    return [
        {
            "bench": "schedules",
            "name": f"{BURST} ticks in one second vs the same gRPC calls alone",
            "ours_seconds": [round(seconds, 3) for seconds in ours],
            "peer_seconds": [round(seconds, 3) for seconds in peer],
            "ratio": round(statistics.median(ours) / statistics.median(peer), 2),
        }
    ]


def _calls_alone(pod: Pod, names: list[str]) -> float:
    """The same calls by a bare client, as many at once, from a process of its own."""
    command = [sys.executable, "-m", "tests.bench.schedules", "calls", pod.app_address]
    caller = Child([*command, str(len(names))], pod.directory / "calls.log")
    with caller:
        assert caller.wait() == 0, caller.output
    pod.arrivals()
    return float(caller.output.split()[-1])


async def call(address: str, count: int) -> None:
    """Print the seconds that so many calls take."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = callback_pb2_grpc.AppCallbackStub(channel)
        slots = asyncio.Semaphore(CALLS_AT_ONCE)

        async def one(number: int) -> None:
            request = _request(f"r0-{number:04}")
            metadata = context_metadata(request.context)
            async with slots:
                await stub.Execute(request, metadata=metadata)

        await one(0)

        began = time.time()
        await asyncio.gather(*(one(number) for number in range(count)))
        print(time.time() - began)


def _request(name: str) -> callback_pb2.ExecuteRequest:
    """What a sidecar sends for a first tick, field by field."""
    now = datetime.now(UTC)
    return callback_pb2.ExecuteRequest(
        context=callback_pb2.ClusterContext(
            cluster="bench",
            runner_id=f"{os.uname().nodename}-0123456789abcdef",
            group="default",
            is_leader=True,
            epoch=1,
            entity_type="schedule",
            entity_id=name,
        ),
        run_id=1,
        kind=runs_pb2.RUN_KIND_SCHEDULE,
        name=name,
        attempt=1,
        scheduled_at=timestamp(now),
        idempotency_key=f"bench/{name}/{now:%Y-%m-%dT%H:%M:%SZ}",
        metadata=runs_pb2.ExecutionMetadata(),
    )


# ── one tick ────────────────────────────────────────────────────────────────────────────────────


def lateness() -> list[dict[str, Any]]:
    """A tick each second, one at a time, for two minutes; half a second later a bare process."""
    with _postgres() as url, Pod.on(url, [{"name": "each", "every": "1s"}]) as pod:
        succeeded = "SELECT count(*) > 3 FROM baton.run WHERE outcome = 'succeeded'"
        pod.wait_for(succeeded, True)
        pod.arrivals()
        command = [sys.executable, "-m", "tests.bench.schedules", "bare", pod.app_address, url]
        with Child([*command, str(LATENESS_TICKS)], pod.directory / "bare.log") as bare:
            assert bare.wait(LATENESS_TICKS + 30) == 0, bare.output
        arrived = pod.arrivals()
        late = sorted((at - due) * 1000 for at, name, due in arrived if name == "each")
        peer = sorted((at - due) * 1000 for at, name, due in arrived if name == "bare")
        started = pod.query(
            "SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM"
            " started_at - tick)) FROM baton.run"
            " WHERE started_at IS NOT NULL AND tick > clock_timestamp() - interval '100 s'"
        )
    return [
        {
            "bench": "schedules",
            "name": "lateness of a single tick, due time to arrival in the app",
            "ticks": len(late),
            "p50_ms": round(late[len(late) // 2], 1),
            "p99_ms": round(late[int(len(late) * 0.99)], 1),
            "worst_ms": round(late[-1], 1),
            "p99_started_ms": round(float(started) * 1000, 1),
            "peer_p50_ms": round(peer[len(peer) // 2], 1),
            "peer_p99_ms": round(peer[int(len(peer) * 0.99)], 1),
            "peer_worst_ms": round(peer[-1], 1),
            "load": os.getloadavg()[0],
        }
    ]


def bare(address: str, url: str, count: int) -> None:
    """What this machine takes for it: at an instant, two commits in Postgres and one call."""
    with (
        psycopg.connect(url, autocommit=True) as connection,
        grpc.insecure_channel(address) as channel,
    ):
        stub: Any = callback_pb2_grpc.AppCallbackStub(cast(Any, channel))
        connection.execute("CREATE TABLE bare (due timestamptz)")
        first = int(time.time()) + 2.5
        for due in (datetime.fromtimestamp(first + n, UTC) for n in range(count)):
            time.sleep(max(0.0, due.timestamp() - time.time()))
            for _ in range(2):
                connection.execute("INSERT INTO bare VALUES (%s)", (due,))
            request = _request("bare")
            request.scheduled_at.FromDatetime(due)
            stub.Execute(request, metadata=context_metadata(request.context))


# ── a million rows ──────────────────────────────────────────────────────────────────────────────

_FILL = """
INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, state, outcome, due_at,
    attempt, epoch, started_at, attempt_started_at, finished_at, history)
SELECT %(cluster_id)s, %(group_id)s, 'schedule', 'old-' || n %% 200, 1000000 + n %% 200,
    clock_timestamp() - n * interval '500 ms', 'ended', 'succeeded', clock_timestamp(), 1, 1,
    clock_timestamp(), clock_timestamp(), clock_timestamp() - n * interval '500 ms',
    '[{"state": "queued"}, {"state": "running"}, {"state": "ended"}]'
FROM generate_series(1, %(rows)s) AS n
"""


def history() -> list[dict[str, Any]]:
    """Milliseconds for claim and completion of batches of 64, and of single runs."""
    with _postgres() as url:
        return asyncio.run(_history(url))


async def _history(url: str) -> list[dict[str, Any]]:
    """Two databases of one server by turns, so that a busy machine hurts both."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("CREATE DATABASE long_history")
    long = urlsplit(url)._replace(path="/long_history").geturl()
    async with laboratory(url) as empty_lab, laboratory(long) as full_lab:
        await _fill(long, full_lab.identity.cluster_id, full_lab.identity.groups["default"])
        for lab in (empty_lab, full_lab):
            for number in range(64):
                await lab.add(Schedule(name=f"s{number:02}", every_seconds=1.0))
        rounds = [(await _costs(empty_lab), await _costs(full_lab)) for _ in range(ROUNDS)]
    return [
        {
            "bench": "schedules",
            "name": f"{what} beside {HISTORY_ROWS:,} rows vs an empty table",
            "ours_ms": round(statistics.median(full[what] for _, full in rounds), 2),
            "peer_ms": round(statistics.median(empty[what] for empty, _ in rounds), 2),
            "ratio": round(
                statistics.median(full[what] / empty[what] for empty, full in rounds), 2
            ),
        }
        for what in rounds[0][0]
    ]


async def _fill(url: str, cluster_id: int, group_id: int) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        parameters = {"cluster_id": cluster_id, "group_id": group_id, "rows": HISTORY_ROWS}
        await connection.execute(_FILL.encode(), parameters)


async def _costs(lab: Any) -> dict[str, float]:
    term = await lab.term()
    costs: dict[str, list[float]] = {}

    async def timed(what: str, work: Any) -> Any:
        began = time.perf_counter()
        result = await work
        costs.setdefault(what, []).append((time.perf_counter() - began) * 1000)
        return result

    await lab.sql(
        """INSERT INTO baton.run
               (cluster_id, group_id, kind, name, schedule_id, tick, state, due_at)
           SELECT cluster_id, group_id, 'schedule', name, id, watermark - interval '1 day'
                 - n * interval '1 min' - %(life)s * interval '1 s',
               'queued', clock_timestamp()
           FROM baton.schedule, generate_series(1, 60) AS n WHERE retired_at IS NULL""",
        life=term.epoch,
    )
    done = Verdict(Outcome.SUCCEEDED, cause="succeeded")
    for size in (64, 1):
        for _ in range(25):
            claim = await timed(f"claim of {size}", lab.runs.claim(term, limit=size))
            assert len(claim.runs) == size
            reports = [Completion(run, done) for run in claim.runs]
            await timed(f"completion of {size}", lab.runs.complete(term, reports))
    await lab.sql("DELETE FROM baton.run WHERE state = 'queued'")
    return {what: statistics.median(times[5:]) for what, times in costs.items()}


# ── ten thousand schedules ──────────────────────────────────────────────────────────────────────


def many() -> list[dict[str, Any]]:
    one, thousands = _standing(1), _standing(MANY)
    more = {what: round(thousands[what] - one[what], 2) for what in one}
    return [
        {
            "bench": "schedules",
            "name": f"{MANY:,} schedules in one cluster, and what they add to one",
            **{f"{what}": value for what, value in thousands.items()},
            **{f"{what}_more": value for what, value in more.items()},
            "load": os.getloadavg()[0],
        }
    ]


def _standing(count: int) -> dict[str, float]:
    """Started on schedules that stand in the database, as any new leader is; after a clean end."""
    schedules = [
        # Idle: none of them is due soon.
        {"name": f"s{n:05}", "cron": f"{n % 60} {n // 60 % 24} 1 1 *"}
        for n in range(count)
    ]
    with _postgres() as url:
        standing = "SELECT count(*) FROM baton.schedule WHERE retired_at IS NULL"
        with Pod.on(url, schedules) as pod:
            pod.wait_for(standing, count)
            time.sleep(5)
            pod.sidecar.terminate()
            assert pod.sidecar.wait() == 0
            began = boottime()
            pod.sidecar.start()
            wait_until(lambda: _ready(pod), 60, "ready")
            ready = boottime() - began
            time.sleep(20)
            cpu, at = _cpu(pod.sidecar.pid), time.monotonic()
            time.sleep(IDLE_SECONDS)
            used = (_cpu(pod.sidecar.pid) - cpu) / (time.monotonic() - at)
            return {
                "ready_seconds": round(ready, 2),
                "memory_mb": round(_memory_mb(pod.sidecar.pid), 1),
                "idle_cpu_percent": round(used * 100, 2),
            }


def _ready(pod: Pod) -> bool:
    """It leads, and its readiness probe is green."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{pod.http_port}/health", timeout=2) as answer:
            about = json.loads(answer.read())
    except OSError:
        return False
    return bool(about["leadership"] and about["leadership"][0]["is_leader"])


def _memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


BENCHES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "burst": burst,
    "lateness": lateness,
    "history": history,
    "many": many,
}


def main(arguments: list[str]) -> None:
    match arguments:
        case ["app", address, file]:
            asyncio.run(serve(address, Path(file)))
        case ["bare", address, url, count]:
            bare(address, url, int(count))
        case ["calls", address, count]:
            asyncio.run(call(address, int(count)))
        case _:
            for name in arguments or BENCHES:
                for row in BENCHES[name]():
                    print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
