"""The socket behind the front: only this process can reach it."""

import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import structlog

log = structlog.get_logger()

# Writable in containers whose root file system is read-only; the chart mounts the last one.
_DIRECTORIES = (None, "/dev/shm", "/run/baton")  # noqa: S108 - mkdtemp makes a private one in it


class PrivateSocket:
    """Where gRPC listens: a socket file that is removed as soon as it is held open here.

    Without a writable directory it has a random abstract name, which a process of the same network
    namespace could find: it would pass by the front's limits, not by the token.
    """

    def __init__(self) -> None:
        self._directory = _private_directory()
        self._name = f"baton-{token_hex(16)}"
        self._handle = -1
        if self._directory is None:
            log.warning("api_socket_abstract", problem="there is no writable directory; mount /tmp")

    @property
    def address(self) -> str:
        if self._directory is None:
            return f"unix-abstract:{self._name}"
        return f"unix:{self._directory / 'api.sock'}"

    def hide(self) -> None:
        """gRPC listens: from now on it can be reached through our handle only."""
        if self._directory is not None:
            self._handle = os.open(self._directory / "api.sock", os.O_PATH | os.O_CLOEXEC)
            shutil.rmtree(self._directory)

    def connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.setblocking(False)
            connection.bind("")  # a name of its own: `context.peer()` tells connections apart
            hidden = f"/proc/self/fd/{self._handle}"
            connection.connect(f"\0{self._name}" if self._directory is None else hidden)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def _private_directory() -> Path | None:
    for parent in _DIRECTORIES:
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix="baton-", dir=parent))
    return None
