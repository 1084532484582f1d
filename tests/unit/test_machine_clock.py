"""The clock that leases are measured on."""

import time

import pytest

from sidecar.adapters.clock import boottime


def test_leases_count_the_time_that_a_machine_was_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G1: a leader that slept through its lease must know so when it wakes up.

    No test can suspend its machine: this one, of all clocks there are, has only the right one.
    """
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 3600.0}.__getitem__)
    assert boottime() == 3600.0
