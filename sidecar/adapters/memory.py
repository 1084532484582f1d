"""How much memory this process uses and may use; read once a second.

Guarantees: the limit is that of the container (cgroup v1 or v2), read each time because it may
change; memory freed after a burst is returned to the system.
"""

import asyncio
import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import structlog

from sidecar.model.admission import memory_ceiling

log = structlog.get_logger()

_INTERVAL_SECONDS = 1.0
_NO_LIMIT = 1 << 60  # cgroup v1 writes a number near 2**63
_GROWTH_BYTES = 32 * 1024 * 1024  # since memory was last given back
_TRIM_SECONDS = 10
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Admission(Protocol):
    def record_memory(self, used_bytes: int, ceiling_bytes: int) -> int: ...


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


def limit_bytes(root: Path = Path("/")) -> int | None:
    """The lowest limit of the cgroups that this process is in; None: there is none."""
    found = [limit for file in _limit_files(root) if (limit := _limit(file)) is not None]
    return min(found, default=None)


def _limit_files(root: Path) -> list[Path]:
    mounts = root / "sys/fs/cgroup"
    # In a container its own cgroup is mounted at the root; elsewhere it is below.
    files = [mounts / "memory.max", mounts / "memory/memory.limit_in_bytes"]
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                files.append(mounts / path.lstrip("/") / "memory.max")
            elif "memory" in controllers.split(","):
                files.append(mounts / "memory" / path.lstrip("/") / "memory.limit_in_bytes")
    return files


def _limit(file: Path) -> int | None:
    try:
        limit = int(file.read_text())
    except (OSError, ValueError):  # absent, or "max"
        return None
    return limit if 0 < limit < _NO_LIMIT else None


class MemoryWatch:
    """Reports the memory in use to the API's admission each second."""

    def __init__(
        self,
        admission: Admission,
        used: Callable[[], int] = resident_bytes,
        limit: Callable[[], int | None] = limit_bytes,
    ) -> None:
        self._admission, self._used, self._limit = admission, used, limit
        self._short = False
        self._low, self._trim_in = used(), 0

    async def run(self) -> None:
        while True:
            self.look()
            await self._give_back()
            await asyncio.sleep(_INTERVAL_SECONDS)

    def look(self) -> None:
        used, ceiling = self._used(), memory_ceiling(self._limit())
        ended = self._admission.record_memory(used, ceiling)
        short = used >= ceiling
        if short != self._short or ended:
            log.warning(
                "memory_short" if short else "memory_recovered",
                used_bytes=used,
                ceiling_bytes=ceiling,
                streams_ended=ended,
            )
        self._short = short

    async def _give_back(self) -> None:
        """Return freed memory: glibc keeps it, after a burst hundreds of megabytes."""
        self._trim_in = max(0, self._trim_in - 1)
        self._low = min(self._low, self._used())
        if self._trim_in or self._used() < self._low + _GROWTH_BYTES:
            return
        self._trim_in = _TRIM_SECONDS
        with suppress(AttributeError):  # another libc
            await asyncio.to_thread(ctypes.CDLL(None).malloc_trim, 0)
        self._low = self._used()
