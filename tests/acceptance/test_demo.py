"""`baton demo` as a user runs it: every check passes, it ends, and it leaves nothing behind."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_PR_SET_CHILD_SUBREAPER = 36
_COMMAND = [sys.executable, "-m", "sidecar", "demo", "--seconds", "20"]


def _children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a demo; afterwards it asserts that no process and no file is left."""
    # A process that the demo leaves behind becomes our child.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    before, temporary = _children(), tmp_path / "tmp"
    temporary.mkdir()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
    yield {**ours, "TMPDIR": str(temporary), "TERM": "xterm"}
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0)
    assert _children() <= before, "a process was left"
    assert not list(temporary.iterdir()), "a file was left"


def test_the_demo_shows_a_crash_and_a_hand_over_and_ends(environment: dict[str, str]) -> None:
    """G4 G5 G8: as plain lines, because the output is not a terminal."""
    demo = subprocess.run(_COMMAND, env=environment, capture_output=True, text=True, timeout=100)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""
    assert "\x1b" not in demo.stdout
    for expected in (
        r"pod-\d leads billing, epoch \d+",
        r"flaky \S+ attempt [12] failed, retry in [\d.]+ s: supplier busy",
        r"flaky \S+ succeeded on pod-\d at attempt 3",
        r"SIGKILL to (pod-\d): [^$]*(?!\1)pod-\d took over default \d\.\d\d s after the crash",
        r"order-flow #\d+ redelivered to pod-\d, attempt 2",
        r"report \S+ succeeded on pod-\d, [\d.]+ s late, but not lost",
        r"coordinator resumed at \d+ on pod-\d, after \d+ on pod-\d",
        r"pod-\d rejoined as a standby",
        r"SIGTERM to pod-\d: [^$]*took over default \d\.\d\d s after the hand-over",
        r"ticks expected: \d+ succeeded, 0 skipped, 0 lost",
        r"\d orders, each step performed once; [1-9] moved to another pod",
        r"all checks passed",
    ):
        assert re.search(expected, demo.stdout), f"{expected}\n{demo.stdout}"


def test_ctrl_c_restores_the_terminal_and_stops_everything(environment: dict[str, str]) -> None:
    """In the middle of the live view, on a terminal of 80 by 24."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    demo = subprocess.Popen(_COMMAND, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    try:
        seen = _read_until(ours, b"order-flow #", seconds=60)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 130
        seen += _read_until(ours, b"\x1b[?1049l", seconds=5)
        assert termios.tcgetattr(theirs) == before
    finally:
        demo.kill()
        demo.wait()
        os.close(ours)
        os.close(theirs)
    assert b"\x1b[?1049h" in seen
    assert b"\x1b[?25h" in seen
    assert b"Traceback" not in seen


def _read_until(descriptor: int, text: bytes, seconds: float) -> bytes:
    os.set_blocking(descriptor, False)
    give_up_at, seen = time.monotonic() + seconds, b""
    while text not in seen:
        assert time.monotonic() < give_up_at, seen[-3000:].decode(errors="replace")
        time.sleep(0.02)
        try:
            seen += os.read(descriptor, 65536)
        except BlockingIOError:
            continue
    return seen
