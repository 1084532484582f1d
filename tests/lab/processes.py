"""Child processes that a test can kill, freeze and read, and that never outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def boottime() -> float:
    """Seconds on the clock of the histories; the same for every process of this machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait_until(
    condition: Callable[[], T | None], timeout: float, what: str | Callable[[], str] = "condition"
) -> T:
    """The first true value of `condition`, or an AssertionError that says what did not happen."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {timeout} s: {text}")
        time.sleep(0.02)
    return value


def _environment() -> dict[str, str]:
    """Ours, but for BATON_…: what tells the tests where servers are is no setting of a sidecar."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}


def baton(*arguments: str) -> str:
    """What `baton …` prints; it must end with 0."""
    command = [sys.executable, "-m", "sidecar", *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=_environment(), check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


class Child:
    """A process whose output goes to a file; killed by the kernel when the starting thread dies."""

    def __init__(
        self, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.command, self.log, self.env = command, log, dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it, or start it anew after it has ended."""
        assert not self.running, f"{self.command} is running already"
        parent = os.getpid()

        def die_with_parent() -> None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**_environment(), **self.env},
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        return self

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def terminate(self) -> None:
        """SIGTERM: asked to end, as by the kubelet."""
        self._started.send_signal(signal.SIGTERM)

    def freeze(self) -> None:
        self._started.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._started.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, which also ends a frozen process; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait(self, timeout: float = 60) -> int:
        """The exit code, once it has ended by itself."""
        return self._started.wait(timeout)

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
