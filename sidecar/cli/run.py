"""`baton run`: the sidecar, until SIGTERM or SIGINT.

The config file is read again on SIGHUP and when its content changed (a mounted ConfigMap is
replaced, not edited). Schedules follow it; a file that is wrong, or of another cluster, changes
nothing and is logged (`config/reload.py`).
"""

import argparse
import asyncio
import gc
import os
import signal
import sys
from math import inf
from pathlib import Path
from typing import NoReturn

import structlog

from sidecar import logs
from sidecar.adapters.files import ContentWatch, beside_loop
from sidecar.app import Sidecar
from sidecar.config import ConfigError, SecretSource, SecretUnreadable, Settings, load
from sidecar.model.errors import SidecarError

log = structlog.get_logger()

_LOOK_SECONDS = 2.0
_RETRY_SECONDS = 15.0


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
    """Print the problem last: gRPC's core also prints errors about a server that half started."""
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
    gc.freeze()  # these objects live until the end: scanning them repeatedly delays ticks
    try:
        await sidecar.run()
    finally:
        follow.cancel()


async def _follow(file: Path | None, asked: asyncio.Event, sidecar: Sidecar) -> None:
    """Reload the file whenever it changes, or on request.

    Beside the loop: a file of thousands takes seconds, a volume that hangs for ever; pings must
    wait for neither.
    """
    loop, watch, retry_at = asyncio.get_running_loop(), ContentWatch(file), inf
    await beside_loop(watch.changed)
    while True:
        wanted = await _asked_within(asked, _LOOK_SECONDS)
        wanted |= await beside_loop(watch.changed)
        if not wanted and loop.time() < retry_at:
            continue
        try:
            settings = await beside_loop(lambda: load(file, os.environ))
        except ConfigError as error:
            # Retry: the file of a secret may have been missing only for a moment.
            retry_at = loop.time() + _RETRY_SECONDS
            sidecar.config.refuse([str(problem) for problem in error.problems])
        else:
            retry_at = inf
            sidecar.config.offer(settings)


async def _asked_within(asked: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await asked.wait()
    except TimeoutError:
        return False
    asked.clear()
    return True


def _secrets(settings: Settings) -> list[str]:
    """The secrets to redact; the content of an unreadable file is added when it is read."""
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
