"""A cut namespace hears nothing; a healed one goes on where it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab import netns
from tests.lab.netns import Namespace
from tests.lab.processes import Child, wait_until

pytestmark = pytest.mark.skipif(bool(netns.why_not()), reason=netns.why_not() or "never")

# A datagram there, an answer back: each direction can be seen to fail on its own.
_ECHO = """
import socket, sys
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echo.bind((sys.argv[1], 0))
print("port", echo.getsockname()[1], flush=True)
while True:
    data, peer = echo.recvfrom(100)
    print("heard", data.decode(), flush=True)
    echo.sendto(data, peer)
"""
_CALLER = """
import socket, sys
caller = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
caller.settimeout(0.5)
try:
    caller.connect((sys.argv[1], int(sys.argv[2])))
    caller.send(sys.argv[3].encode())
    caller.recv(100)
    print("answered")
except TimeoutError:
    print("silence")
except OSError:
    print("unreachable")
"""


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    with Namespace() as namespace:
        yield namespace


@pytest.mark.parametrize(
    ("fault", "caller_sees", "echo_hears"),
    [
        (Namespace.cut, "silence", False),
        (Namespace.cut_outgoing, "silence", False),
        (Namespace.cut_incoming, "silence", True),
        (Namespace.unplug, "unreachable", False),
    ],
)
def test_faults_and_healing(
    namespace: Namespace,
    tmp_path: Path,
    fault: Callable[[Namespace], None],
    caller_sees: str,
    echo_hears: bool,
) -> None:
    def call(word: str) -> str:
        command = [sys.executable, "-c", _CALLER, namespace.outer_address, port, word]
        done = subprocess.run(namespace.command(command), capture_output=True, check=True)
        return done.stdout.decode().strip()

    with Child([sys.executable, "-c", _ECHO, namespace.outer_address], tmp_path / "echo") as echo:
        port = wait_until(lambda: echo.output.partition("port ")[2].strip(), 10, "a port")
        assert call("before") == "answered"
        fault(namespace)
        assert call("during") == caller_sees
        assert ("heard during" in echo.output) is echo_hears
        namespace.heal()
        assert call("after") == "answered"


def test_nothing_is_left(namespace: Namespace) -> None:
    namespace.stop()
    left = subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
    assert namespace.outer not in left
    names = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert namespace.name not in names
