"""`baton demo`: a cluster on this machine that goes through a crash and a clean hand-over.

The demo runs real sidecars and example apps as processes. It starts a Postgres and a Redis server,
or uses those of BATON_POSTGRES_URL and BATON_REDIS_URL. The exit code is 0 if every check passed,
else 1. When it ends, also after Ctrl-C, it has removed all its processes, files and schemas. (After
SIGKILL files remain.)
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from types import FrameType

import grpc
import psycopg
from psycopg import sql

from devtools.demo.display import open_display
from devtools.demo.model import DemoFailed
from devtools.demo.pods import EXAMPLE, Pod, Servers
from devtools.demo.scenario import Scenario, Timing
from devtools.demo.summary import Results, failed_checks, summary
from devtools.servers import ServerFailed, ServerNotFound, postgres_url, redis_url
from sidecar.adapters.grpc_app import described

REPLICAS = range(2, 10)
SECONDS_MIN = 20.0


def main(options: argparse.Namespace) -> int:
    problem = options_problem(options.replicas, options.seconds)
    if problem:
        print(f"baton demo: {problem}", file=sys.stderr)
        return 2
    _handle_signals_like_ctrl_c()
    try:
        return _run_with_servers(options.replicas, Timing(options.seconds, time.monotonic()))
    except (ServerNotFound, ServerFailed, DemoFailed, psycopg.Error) as error:
        print(f"baton demo: {error}", file=sys.stderr)
        return 1
    except grpc.aio.AioRpcError as error:
        print(f"baton demo: a call to a sidecar failed: {described(error)}", file=sys.stderr)
        return 1


def options_problem(replicas: int, seconds: float) -> str:
    """What is wrong with these options or with this installation; empty if nothing is."""
    if replicas not in REPLICAS:
        return f"--replicas: {replicas} is not in {REPLICAS.start} to {REPLICAS.stop - 1}"
    if not SECONDS_MIN <= seconds <= 3600:
        return f"--seconds: {seconds:g} is not in {SECONDS_MIN:g} to 3600 (a takeover needs time)"
    if not EXAMPLE.exists():
        return f"{EXAMPLE} not found: clone the repository and run `make demo` there"
    return ""


def _run_with_servers(replicas: int, timing: Timing) -> int:
    given = os.environ.get("BATON_POSTGRES_URL", "")
    print("starting Postgres and Redis ..." if not given else "starting ...", flush=True)
    with (
        postgres_url(given) as postgres,
        redis_url(os.environ.get("BATON_REDIS_URL", "")) as redis,
        _schema(postgres) as schema,
        tempfile.TemporaryDirectory(prefix="baton-demo-") as directory,
    ):
        servers = Servers(postgres, redis, schema)
        return asyncio.run(_run_scenario(Path(directory), servers, replicas, timing))


async def _run_scenario(directory: Path, servers: Servers, replicas: int, timing: Timing) -> int:
    ledger = directory / "ledger"
    ledger.touch()
    pods = [Pod(f"pod-{n}", directory, servers, ledger) for n in range(1, replicas + 1)]
    try:
        with open_display() as display:
            results = await Scenario(pods, display, ledger, timing).run()
        return _print_summary(results)
    finally:
        try:
            await asyncio.gather(*(pod.stop() for pod in pods))
        finally:  # a second Ctrl-C
            for pod in pods:
                pod.kill()


def _print_summary(results: Results) -> int:
    print("\nSummary")
    for line in summary(results):
        print(f"  {line}")
    failed = failed_checks(results)
    for line in failed:
        print(f"baton demo: check failed: {line}", file=sys.stderr)
    if not failed:
        print("  all checks passed")
    return 1 if failed else 0


@contextmanager
def _schema(url: str) -> Iterator[str]:
    """The name of a new schema, dropped at the end; the pods create it and its tables."""
    schema = f"baton_demo_{token_hex(4)}"
    psycopg.connect(url, connect_timeout=5).close()  # fail early if it is not reachable
    try:
        yield schema
    finally:
        with psycopg.connect(url, connect_timeout=5, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))
            )


def _handle_signals_like_ctrl_c() -> None:
    """SIGTERM and a closed terminal (SIGHUP) shut the demo down as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores SIGINT
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
