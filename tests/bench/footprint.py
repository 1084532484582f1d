"""What one idle sidecar costs: memory, processor time, and how soon it is ready.

The ratio is that of resident memory to a process that only imports the packages which the sidecar
stands on (asyncio, gRPC, psycopg, Prometheus, structlog, croniter and, with a cache, redis-py), in
the same interpreter and run: 1 would mean that Baton itself costs nothing. `ready_seconds` is from
the sidecar's first log line to the first 200 of /readyz, with Postgres and the app there already;
before it, Python reads the code, for `import_cpu_seconds` of processor time.
Run alone: `python -m tests.bench.footprint`.
"""

import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from devtools.servers import PostgresServer, RedisServer, postgres_binaries
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica, Setup

LIMITS = (
    "Memory: Python and the packages that it stands on. Processor time: a ping and a health check"
    " each second. A sidecar in Go or Rust would need a fraction of this memory."
)
SETTLE_SECONDS = 5.0
IDLE_SECONDS = 20.0
_PACKAGES = "asyncio, grpc.aio, psycopg, prometheus_client, structlog, croniter"
_CLOCK_TICKS = 100  # per second, in /proc, on every Linux that we know


def run() -> list[dict[str, Any]]:
    """The rows of the report."""
    rows = []
    with PostgresServer(postgres_binaries("auto")) as postgres, RedisServer() as redis:
        for cache in ("", redis.url):
            setup = Setup(postgres.url, cache, config={"cluster": "cached" if cache else "plain"})
            packages = _memory_of_packages(f"{_PACKAGES}, redis.asyncio" if cache else _PACKAGES)
            with tempfile.TemporaryDirectory() as directory:
                rows += _measured(Path(directory) / "lab", setup, packages)
    return rows


def _measured(directory: Path, setup: Setup, packages: int) -> list[dict[str, Any]]:
    """A leader and a standby, each at rest."""
    with Cluster(directory, 2, setup) as cluster:
        leader = cluster.wait_for_leader()
        (standby,) = cluster.others(leader)
        time.sleep(SETTLE_SECONDS)
        before = {replica.name: _processor_seconds(replica) for replica in cluster.replicas}
        time.sleep(IDLE_SECONDS)
        return [
            {
                "bench": "footprint",
                "name": f"{role}{' with Redis' if setup.redis_url else ''}",
                **_memory(replica.sidecar.pid),
                "packages_mb": packages // 1024,
                "ratio": round(_status(replica.sidecar.pid, "VmRSS") / packages, 2),
                "cpu_seconds_per_minute": round(
                    (_processor_seconds(replica) - before[replica.name]) * 60 / IDLE_SECONDS, 2
                ),
                "import_cpu_seconds": round(_import_cpu_seconds(), 2),
                "ready_seconds": round(_start_to_ready(replica), 2),
            }
            for role, replica in (("standby", standby), ("leader", leader))
        ]


def _start_to_ready(replica: Replica) -> float:
    """A restart of the sidecar alone: its app and Postgres are there."""
    replica.sidecar.kill()
    known = len(replica.log())
    replica.sidecar.start()
    wait_until(lambda: replica.http("/readyz")[0] == 200, 60, replica.describe)
    ready_at = datetime.now(UTC)
    started_at = datetime.fromisoformat(replica.log()[known]["timestamp"])
    return (ready_at - started_at).total_seconds()


def _import_cpu_seconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import sidecar.cli.run"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _memory(pid: int) -> dict[str, int]:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in rollup[1:]}
    private = sizes["Private_Clean"] + sizes["Private_Dirty"]
    return {"rss_mb": sizes["Rss"] // 1024, "private_mb": private // 1024}


def _memory_of_packages(packages: str) -> int:
    """Kilobytes of a process that has imported them and nothing else."""
    code = f"import {packages}; print(open('/proc/self/status').read())"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return _field(ended.stdout, "VmRSS")


def _status(pid: int, name: str) -> int:
    return _field(Path(f"/proc/{pid}/status").read_text(), name)


def _field(status: str, name: str) -> int:
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name))


def _processor_seconds(replica: Replica) -> float:
    fields = Path(f"/proc/{replica.sidecar.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


if __name__ == "__main__":
    for row in run():
        print(row)
