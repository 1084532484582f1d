"""`baton demo`: the whole thing on this machine, with a crash and a clean hand-over to see.

Real sidecars and example apps as processes, beside a Postgres and a Redis that are started for the
occasion (or the ones named by BATON_POSTGRES_URL and BATON_REDIS_URL). Exit code 0 if everything
that was promised happened, 1 and what did not otherwise. Nothing is left at its end, not even after
Ctrl-C: no process, no file, no schema. (After SIGKILL no process either, but files.)
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

from sidecar.adapters.grpc_app import described
from sidecar.cli.demo.pods import EXAMPLE, Pod, Servers
from sidecar.cli.demo.show import opened
from sidecar.cli.demo.story import Story, Timing
from sidecar.cli.demo.summary import Facts, broken_promises, summary
from sidecar.cli.demo.words import DemoFailed
from sidecar.cli.embedded import ServerFailed, ServerNotFound, postgres_at, redis_at

REPLICAS = range(2, 10)
SECONDS_MIN = 20.0


def main(options: argparse.Namespace) -> int:
    problem = refusal(options.replicas, options.seconds)
    if problem:
        print(f"baton demo: {problem}", file=sys.stderr)
        return 2
    _stop_as_by_ctrl_c()
    try:
        return _performed(options.replicas, Timing(options.seconds, time.monotonic()))
    except (ServerNotFound, ServerFailed, DemoFailed, psycopg.Error) as error:
        print(f"baton demo: {error}", file=sys.stderr)
        return 1
    except grpc.aio.AioRpcError as error:
        print(f"baton demo: a sidecar answered {described(error)}", file=sys.stderr)
        return 1


def refusal(replicas: int, seconds: float) -> str:
    """Why this demo cannot be given; empty if it can."""
    if replicas not in REPLICAS:
        return f"--replicas: {replicas} is not in {REPLICAS.start} to {REPLICAS.stop - 1}"
    if not SECONDS_MIN <= seconds <= 3600:
        return f"--seconds: {seconds:g} is not in {SECONDS_MIN:g} to 3600; a crash needs its time"
    if not EXAMPLE.exists():
        return f"{EXAMPLE} is not there: the demo needs the repository; clone it, then `make demo`"
    return ""


def _performed(replicas: int, timing: Timing) -> int:
    given = os.environ.get("BATON_POSTGRES_URL", "")
    print("starting Postgres and Redis ..." if not given else "starting ...", flush=True)
    with (
        postgres_at(given) as postgres,
        redis_at(os.environ.get("BATON_REDIS_URL", "")) as redis,
        _schema(postgres) as schema,
        tempfile.TemporaryDirectory(prefix="baton-demo-") as directory,
    ):
        servers = Servers(postgres, redis, schema)
        return asyncio.run(_play(Path(directory), servers, replicas, timing))


async def _play(directory: Path, servers: Servers, replicas: int, timing: Timing) -> int:
    ledger = directory / "ledger"
    ledger.touch()
    pods = [Pod(f"pod-{n}", directory, servers, ledger) for n in range(1, replicas + 1)]
    try:
        with opened() as show:
            facts = await Story(pods, show, ledger, timing).play()
        return _judged(facts)
    finally:
        try:
            await asyncio.gather(*(pod.left() for pod in pods))
        finally:  # a second Ctrl-C
            for pod in pods:
                pod.kill()


def _judged(facts: Facts) -> int:
    print("\nSummary")
    for line in summary(facts):
        print(f"  {line}")
    broken = broken_promises(facts)
    for line in broken:
        print(f"baton demo: promised, but did not happen: {line}", file=sys.stderr)
    if not broken:
        print("  everything promised happened")
    return 1 if broken else 0


@contextmanager
def _schema(url: str) -> Iterator[str]:
    """A schema of our own, gone at the end; the pods make its tables."""
    schema = f"baton_demo_{token_hex(4)}"
    psycopg.connect(url, connect_timeout=5).close()  # a clear error now rather than later
    try:
        yield schema
    finally:
        with psycopg.connect(url, connect_timeout=5, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))
            )


def _stop_as_by_ctrl_c() -> None:
    """SIGTERM, and a terminal that is closed, end the demo in order too."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` may have ignored it
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
