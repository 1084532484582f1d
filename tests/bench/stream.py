"""The work stream against the callback: the same runs, the same sidecar, two ways to the app.

    rate       runs that wait in the table, executed as fast as they can be: runs per second, and
               the CPU time that sidecar, app and Postgres need for each
    jobs       jobs that wait in the queue, over the stream: the same figures
    burst      1, 100, 1,000 and 10,000 ticks due at once: from the due time to the app

Both transports take turns in one run. Run alone: `python -m tests.bench.stream [rate jobs burst]`.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import psycopg
import yaml

from devtools.servers import PostgresServer, free_port, postgres_binaries
from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc, stream_pb2_grpc
from sidecar._proto.baton.v1 import stream_pb2 as pb
from tests.lab.processes import Child, wait_until

RUNS = {"stream": 40_000, "callback": 4_000}
BURSTS = (1, 100, 1000, 10_000)
CAPACITY = 1500
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

_FILL = """
INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, state, due_at)
SELECT schedule.cluster_id, group_id, 'trigger', schedule.name, schedule.id, clock_timestamp(),
       'queued', clock_timestamp() + make_interval(secs => %(delay)s)
FROM baton.schedule, generate_series(1, %(runs)s) WHERE schedule.name = 'work'
"""


_ENQUEUE = """
SELECT count(baton.enqueue('bench', 'work', '{}'::jsonb)) FROM generate_series(1, %(jobs)s)
"""


# ── the app ─────────────────────────────────────────────────────────────────────────────────────


class App(callback_pb2_grpc.AppCallbackServicer):
    """Answers at once; notes when each run arrived after it was due."""

    def __init__(self, late: Path) -> None:
        self._late = late.open("w", buffering=1024 * 1024)

    def arrived(self, runs: Any) -> None:
        now = time.time()
        for run in runs:
            due = run.scheduled_at.seconds + run.scheduled_at.nanos / 1e9
            self._late.write(f"{run.name} {due} {now}\n")
        self._late.flush()

    async def OnBecomeLeader(self, request: Any, context: Any) -> Any:
        return callback_pb2.OnBecomeLeaderResponse()

    async def OnLoseLeadership(self, request: Any, context: Any) -> Any:
        return callback_pb2.OnLoseLeadershipResponse()

    async def Execute(self, request: Any, context: Any) -> Any:
        self.arrived([request])
        return callback_pb2.ExecuteResponse()


async def serve(address: str, late: Path) -> None:
    server = grpc.aio.server()
    callback_pb2_grpc.add_AppCallbackServicer_to_server(App(late), server)
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


async def attach(address: str, late: Path, names: list[str]) -> None:
    app = App(late)
    outgoing: asyncio.Queue[pb.AttachRequest] = asyncio.Queue()

    async def requests() -> AsyncIterator[pb.AttachRequest]:
        while True:
            yield await outgoing.get()

    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        hello = pb.Hello(
            client="bench", process_id="1", capacity=CAPACITY, schedules=names, jobs=names
        )
        outgoing.put_nowait(pb.AttachRequest(hello=hello))
        async for message in stream_pb2_grpc.AppStreamStub(channel).Attach(requests()):
            answer = pb.AttachRequest()
            for change in message.leadership:
                become = change.WhichOneof("change") == "become"
                about = change.become.context if become else change.lose.context
                event = pb.LEADERSHIP_EVENT_BECOME if become else pb.LEADERSHIP_EVENT_LOSE
                answer.leadership.add(event=event, group=about.group, epoch=about.epoch)
            if message.HasField("ping"):
                answer.pong.number = message.ping.number
            if message.runs:
                app.arrived(message.runs)
                for run in message.runs:
                    answer.answers.add(run_id=run.run_id, attempt=run.attempt)
            outgoing.put_nowait(answer)


# ── one pod ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Pod:
    url: str
    app: Child
    sidecar: Child
    late: Path
    postgres_pid: int

    def execute(self, statement: str, **values: Any) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement, values)

    def row(self, statement: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement).fetchone()

    def cpu(self) -> dict[str, float]:
        return {
            "sidecar": _cpu_seconds(self.sidecar.pid),
            "app": _cpu_seconds(self.app.pid),
            "postgres": sum(_cpu_seconds(pid, True) for pid in _family(self.postgres_pid)),
        }

    def arrivals(self) -> list[tuple[str, float, float]]:
        lines = (line.split() for line in self.late.read_text().splitlines())
        return [(name, float(due), float(at)) for name, due, at in lines]


def _cpu_seconds(pid: int, children: bool = False) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used = fields[11:15] if children else fields[11:13]
    return sum(int(field) for field in used) / _TICKS_PER_SECOND


def _family(pid: int) -> Iterator[int]:
    yield pid
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                yield int(entry.name)


def _new_database(url: str) -> str:
    name = f"bench_{time.monotonic_ns()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return urlsplit(url)._replace(path=f"/{name}").geturl()


@contextmanager
def pod(server: PostgresServer, transport: str, schedules: list[dict[str, Any]]) -> Iterator[Pod]:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        url = _new_database(server.url)
        app_address, api_address = (f"127.0.0.1:{free_port()}" for _ in range(2))
        config = {
            "cluster": "bench",
            "app": {"address": app_address},
            "api": {"address": api_address},
            "http": {"address": f"127.0.0.1:{free_port()}"},
            "postgres": {"url": url},
            "log": {"level": "warning"},
            "schedules": schedules,
        }
        (directory / "baton.yaml").write_text(yaml.safe_dump(config))
        late = directory / "late"
        names = ",".join(each["name"] for each in schedules)
        (directory / "names").write_text(names)
        address = app_address if transport == "callback" else api_address
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "tests.bench.stream",
            transport,
            address,
            late,
        ]
        sidecar: list[str | Path] = [
            sys.executable,
            "-m",
            "sidecar",
            "run",
            "--config",
            directory / "baton.yaml",
        ]
        with (
            Child([*command, directory / "names"], directory / "app.log") as app,
            Child(sidecar, directory / "sidecar.log") as running,
        ):
            yield Pod(url, app, running, late, server.pid)


# ── the benches ─────────────────────────────────────────────────────────────────────────────────


def rate(server: PostgresServer, transport: str) -> dict[str, float]:
    """Runs that wait are executed; counted from the first arrival to the last."""
    runs = RUNS[transport]
    with pod(server, transport, [{"name": "work", "every": "365d"}]) as one:
        wait_until(lambda: _leads(one), 60, "a leader")
        one.execute(_FILL, runs=runs, delay=3.0)
        one.execute("ANALYZE baton.run")
        before = one.cpu()
        done = "SELECT count(*) FROM baton.run WHERE state = 'ended'"
        while one.row(done)[0] < runs:  # not more often: it reads the whole table
            time.sleep(0.5)
        after = one.cpu()
        times = sorted(at for _, _, at in one.arrivals())
    part = {f"{name}_us": (after[name] - before[name]) / runs * 1e6 for name in before}
    return {"per_second": len(times) / (times[-1] - times[0]), **part}


def jobs(server: PostgresServer) -> dict[str, float]:
    """Jobs of one transaction, from the first arrival to the last."""
    count = RUNS["stream"]
    with pod(server, "stream", [{"name": "work", "every": "365d"}]) as one:
        wait_until(lambda: _leads(one), 60, "a leader")
        before = one.cpu()
        one.execute(_ENQUEUE, jobs=count)
        done = "SELECT count(*) FROM baton.job_ended"
        while one.row(done)[0] < count:
            time.sleep(0.5)
        after = one.cpu()
        times = sorted(at for _, _, at in one.arrivals())
    part = {f"{name}_us": (after[name] - before[name]) / count * 1e6 for name in before}
    return {"per_second": len(times) / (times[-1] - times[0]), **part}


def _leads(one: Pod) -> bool:
    try:
        row = one.row("SELECT epoch FROM baton.term WHERE epoch > 0")
        there = one.row("SELECT 1 FROM baton.schedule")
    except psycopg.Error:
        return False
    return bool(row and there)


def burst(server: PostgresServer, transport: str, ticks: int) -> dict[str, float]:
    """The lateness of ticks that are due together, in the third round of a pod."""
    every = 10 if ticks <= 1000 else 30
    schedules = [{"name": f"s{n}", "every": f"{every}s"} for n in range(ticks)]
    with pod(server, transport, schedules) as one:
        wait_until(lambda: len(one.arrivals()) >= 3 * ticks, 60 + 4 * every, "three rounds")
        rounds: dict[float, list[float]] = {}
        for _, due, at in one.arrivals():
            rounds.setdefault(due, []).append(at - due)
    whole = [sorted(late) for late in rounds.values() if len(late) == ticks]
    late = whole[-1]
    return {
        "p50_ms": statistics.median(late) * 1000,
        "p99_ms": late[int(len(late) * 0.99)] * 1000,
    }


def main() -> None:
    wanted = sys.argv[1:] or ["rate", "jobs", "burst"]
    if wanted[0] in ("callback", "stream"):
        _, transport, address, late, names = sys.argv
        if transport == "callback":
            asyncio.run(serve(address, Path(late)))
        else:
            asyncio.run(attach(address, Path(late), Path(names).read_text().split(",")))
        return
    with PostgresServer(postgres_binaries("auto")) as server:
        for transport in ("callback", "stream"):
            if "rate" in wanted:
                print(transport, "rate", _rounded(rate(server, transport)))
        if "jobs" in wanted:
            print("stream jobs", _rounded(jobs(server)))
        for ticks in BURSTS:
            for transport in ("callback", "stream"):
                if "burst" in wanted:
                    print(transport, ticks, _rounded(burst(server, transport, ticks)))


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 1) for name, value in values.items()}


if __name__ == "__main__":
    main()
