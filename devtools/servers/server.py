"""A server as a child process that can be started, stopped, killed and frozen.

Three mechanisms make sure that no process and no file remains, because none covers every case:
`close` (also at exit and after Ctrl-C) stops the server and removes its directory; the kernel
signals the server when the thread that started it dies; and a shell script waits until this process
has ended, kills the processes of the server that still exist, and removes the directory.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from devtools.servers.binaries import readable_by_others

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
# Below the ephemeral range: no outgoing connection takes the port while the server restarts.
PORTS = range(15_000, 32_000)
_returned_ports: set[int] = set()
_START_SECONDS = 30.0
_STOP_SECONDS = 20.0

# $1 is the directory; every process of the server has $1/data as its working directory. `read`
# returns when this process ends. rm is repeated because a dying server may still be writing.
_CLEANUP_SCRIPT = """
trap '' INT TERM HUP
read -r _
sleep 0.5
for process in /proc/[0-9]*; do
  if [ "$(readlink "$process/cwd")" = "$1/data" ]; then kill -9 "${process#/proc/}"; fi
done 2>/dev/null
# A killed Postgres leaves a System V memory segment, named in the seventh line of its pid file.
sed -n 7p "$1/data/postmaster.pid" 2>/dev/null | while read -r _ id; do ipcrm -m "$id"; done
for attempt in 1 2 3 4 5; do rm -rf -- "$1" && break; sleep 1; done
"""


class ServerFailed(Exception):
    """The server failed to start or to stop; the message ends with the tail of its log."""


def free_port() -> int:
    """A loopback port that is not in use and that this process has not returned before."""
    for port in random.SystemRandom().sample(PORTS, 200):
        if port in _returned_ports:
            continue  # its owner may be about to listen, or restarting
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _returned_ports.add(port)
        return port
    raise ServerFailed("no free port on 127.0.0.1")


class Server:
    """Base class: a subclass defines how to start the server and how to check that it is ready."""

    name = "server"
    refuses_root = False
    death_signal = signal.SIGKILL
    stop_signals: Mapping[str, signal.Signals] = {"fast": signal.SIGTERM}

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._cleanup: subprocess.Popen[bytes] | None = None
        self._owner = pwd.getpwnam("nobody") if self.refuses_root and os.geteuid() == 0 else None

    # Defined by a subclass.

    def _prepare(self) -> None:
        """Fill the new data directory."""

    def _command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def _is_ready(self) -> bool:
        raise NotImplementedError

    # Public.

    @property
    def directory(self) -> Path:
        if self._directory is None:
            raise ServerFailed(f"{self.name} was not started or is closed")
        return self._directory

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerFailed(f"{self.name} is not running")
        return self._process.pid

    def start(self) -> Self:
        """Start with the existing data, or new data; returns when the server is ready."""
        if self._directory is None:
            self._directory = self._make_directory()
            atexit.register(self.close)
        try:
            if not any(self.data_dir.iterdir()):
                self._prepare()
            self._process = self._spawn(self._command())
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def stop(self, mode: str = "fast") -> None:
        """Shut down cleanly; the data stay for the next `start`."""
        if self._process is None:
            return
        self.thaw()  # a frozen process handles no signal
        self._process.send_signal(self.stop_signals[mode])
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(f"{self.name} did not stop ({mode})\n{self._log_tail()}") from None
        self._process = None

    def kill(self) -> None:
        """Simulate a crash: SIGKILL to every process of the server; the data stay."""
        self._signal_all(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Simulate a hang: connections stay open and no process answers."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and remove its directory; safe to call twice."""
        if self._directory is None:
            return
        try:
            self.stop(list(self.stop_signals)[-1])  # the fastest
        finally:
            self.kill()
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
            atexit.unregister(self.close)
            if self._cleanup is not None:
                self._cleanup.kill()
                self._cleanup.communicate()
                self._cleanup = None

    def __enter__(self) -> Self:
        return self.start() if self._process is None else self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Private.

    def _make_directory(self) -> Path:
        directory = Path(
            tempfile.mkdtemp(prefix=f"baton-{self.name}-", dir=self._parent_directory())
        )
        (directory / "data").mkdir(mode=0o700)
        if self._owner is not None:
            for path in (directory, directory / "data"):
                os.chown(path, self._owner.pw_uid, self._owner.pw_gid)
        self._cleanup = subprocess.Popen(  # noqa: S603 - our own script
            ["/bin/sh", "-c", _CLEANUP_SCRIPT, "sh", directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        return directory

    def _parent_directory(self) -> Path:
        preferred = Path(tempfile.gettempdir()).resolve()
        return preferred if self._owner is None or readable_by_others(preferred) else Path("/tmp")  # noqa: S108

    def _write(self, path: Path, text: str) -> None:
        """Write a file that only the server's user can read."""
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        if self._owner is not None:
            os.chown(path, self._owner.pw_uid, self._owner.pw_gid)

    def _spawn(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        parent, death_signal, owner = os.getpid(), self.death_signal, self._owner

        def die_with_parent() -> None:
            # Runs after the change of user, which clears this setting.
            _LIBC.prctl(_PR_SET_PDEATHSIG, death_signal)
            if os.getppid() != parent:
                os._exit(1)

        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own binaries and arguments
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.data_dir,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,  # Ctrl-C does not reach the server; `close` stops it
                preexec_fn=die_with_parent,
                user=owner and owner.pw_uid,
                group=owner and owner.pw_gid,
                extra_groups=None if owner is None else [],
            )

    def _wait_until_ready(self) -> None:
        assert self._process is not None  # noqa: S101 - called after the spawn
        give_up_at = time.monotonic() + _START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise ServerFailed(f"{self.name} did not start\n{self._log_tail()}")
            time.sleep(0.02)

    def _log_tail(self) -> str:
        return "\n".join(self.log.splitlines()[-15:])

    def _signal_all(self, number: signal.Signals) -> None:
        """Signal every process of the server, including those that start meanwhile."""
        done: set[int] = set()
        while new := set(self._processes()) - done:
            for pid in sorted(new):  # the oldest first: it starts the others
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            done |= new

    def _processes(self) -> Iterator[int]:
        # Postgres backends have sessions of their own; what they share is the working directory.
        if self._directory is None:
            return
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(entry / "cwd") == str(self.data_dir):
                    yield int(entry.name)
            except OSError:
                continue
