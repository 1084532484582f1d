"""Servers that can be broken in ways of their own: a disk that is full, a machine that is slow."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from devtools.servers import PostgresServer

_DISK_MEGABYTES = 160
_CHUNK = b"\0" * 65_536


def why_no_disk() -> str:
    """Why there can be no small disk here, in one line; empty if there can."""
    return "" if os.geteuid() == 0 else "a small disk needs root (mount -t tmpfs)"


class SmallDiskPostgres(PostgresServer):
    """Its data lie on a file system of their own, which `fill` fills to the last byte."""

    def fill(self) -> None:
        with suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while file.write(_CHUNK):
                pass

    @property
    def running(self) -> bool:
        """A server whose log cannot be written gives up."""
        return self._process is not None and self._process.poll() is None

    def clear(self) -> None:
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        data = self._directory / "data" if self._directory else None
        try:
            super().close()  # which cannot remove what is mounted
        finally:
            if data is not None and data.is_mount():
                subprocess.run(["umount", "--lazy", data], check=True)
                data.rmdir()
                with suppress(OSError):
                    data.parent.rmdir()

    @property
    def _filler(self) -> Path:
        return self.data_dir / "filler"

    def _make_directory(self) -> Path:
        directory = super()._make_directory()
        assert self._owner is not None, why_no_disk()
        options = f"size={_DISK_MEGABYTES}m,mode=0700,uid={self._owner.pw_uid}"
        options += f",gid={self._owner.pw_gid}"
        data = directory / "data"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "baton", data], check=True)
        return directory


class Stutter:
    """A server that stands still again and again for as long as the `with` block lasts."""

    def __init__(self, server: PostgresServer, *, still: float, runs: float) -> None:
        self._server, self._still, self._runs = server, still, runs
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._stutter, name="stutter")

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _stutter(self) -> None:
        while not self._over.is_set():
            self._server.freeze()
            self._over.wait(self._still)
            self._server.thaw()
            self._over.wait(self._runs)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
