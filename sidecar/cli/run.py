"""`baton run`: the sidecar, until SIGTERM or SIGINT.

The config file is read again on SIGHUP and when its content changed (a mounted ConfigMap is
replaced, not edited). Schedules follow it; a file that is wrong changes nothing and is logged.
"""

import argparse
import asyncio
import gc
import os
import signal
import sys
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import structlog

from sidecar import logs
from sidecar.app import Sidecar
from sidecar.config import ConfigError, SecretSource, SecretUnreadable, Settings, load
from sidecar.model.errors import SidecarError

log = structlog.get_logger()

_LOOK_SECONDS = 2.0


def main(options: argparse.Namespace) -> int:
    if not __debug__:
        # gRPC's asyncio channel waits inside an assert: without it, it spins for ever.
        print("baton: cannot run with python -O or PYTHONOPTIMIZE: unset it", file=sys.stderr)
        return 2
    path = options.config or os.environ.get("BATON_CONFIG")
    file = Path(path) if path else None
    try:
        settings = load(file, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    logs.configure(settings.log.level, settings.log.format, _secrets(settings))
    problems: list[BaseException] = []
    try:
        asyncio.run(_run(settings, file))
    except* SidecarError as group:
        problems = _leaves(group)
    if problems:
        _end(problems)
    return 0


def _end(problems: list[BaseException]) -> NoReturn:
    """Say what is wrong, as the last thing: gRPC's core complains of what was half started."""
    for problem in problems:
        print(f"baton: {logs.redacted(str(problem))}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


async def _run(settings: Settings, file: Path | None) -> None:
    sidecar = Sidecar(settings)
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, sidecar.stop)
    loop.add_signal_handler(signal.SIGHUP, asked.set)
    follow = asyncio.create_task(_follow(file, asked, sidecar), name="config.follow")
    gc.freeze()  # what stands now stays: looking through it again and again makes ticks late
    try:
        await sidecar.run()
    finally:
        follow.cancel()


async def _follow(file: Path | None, asked: asyncio.Event, sidecar: Sidecar) -> None:
    """Hand the file to the sidecar whenever it changed, or somebody asks."""
    seen = _digest(file)
    while True:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await asked.wait()
        except TimeoutError:
            if _digest(file) == seen:
                continue
        asked.clear()
        seen = _digest(file)
        try:
            # In a thread: a file of thousands takes seconds, and pings must not wait for it.
            sidecar.reload(await asyncio.to_thread(load, file, os.environ))
        except ConfigError as error:
            log.warning("config_refused", problems=[str(problem) for problem in error.problems])


def _digest(file: Path | None) -> bytes:
    try:
        return sha256(file.read_bytes()).digest() if file else b""
    except OSError:
        return b""  # in the middle of being replaced


def _secrets(settings: Settings) -> list[str]:
    """What must never be logged; a file that cannot be read yet is added when it is read."""
    sources = (
        settings.postgres.url,
        settings.postgres.direct_url,
        settings.redis.url,
        settings.app.token,
        settings.api.token,
    )
    return [secret for source in sources if (secret := _read(source))]


def _read(source: SecretSource) -> str:
    try:
        return source.read()
    except SecretUnreadable:
        return ""


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves
