"""What excuses a lost term is measured: a core that was not given counts, a busy loop does not."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.lab.stalls import LEASE_SECONDS, STARVED_SECONDS_MAX, Stalls, within

# Both on one core, so that each waits for half of the time.
_BUSY = "import os, time; os.sched_setaffinity(0, {%d}); t = time.monotonic()\n"
_BUSY += "while time.monotonic() < t + 20: pass"


def test_only_what_lies_between_counts() -> None:
    assert within([(1.0, 2.0), (5.0, 9.0), (20.0, 30.0)], 1.5, 6.0) == 1.5


def test_a_process_that_shares_its_core_is_starved() -> None:
    core = min(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY % core]) for _ in range(4)]
    try:
        with Stalls(busy[0].pid) as stalls:
            give_up_at = time.monotonic() + 5 * LEASE_SECONDS
            while stalls.starved_seconds <= STARVED_SECONDS_MAX and time.monotonic() < give_up_at:
                time.sleep(0.05)
        assert stalls.cost_a_term
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_a_process_that_sleeps_is_not() -> None:
    with subprocess.Popen(["sleep", "20"]) as idle:
        try:
            with Stalls(idle.pid) as stalls:
                time.sleep(0.5)
            assert stalls.starved_seconds < STARVED_SECONDS_MAX
        finally:
            idle.kill()
