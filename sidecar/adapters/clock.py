"""The clocks of this machine: the monotonic one for leases, and the wall clock."""

import time
from datetime import UTC, datetime


def boottime() -> float:
    """Seconds on CLOCK_BOOTTIME: monotonic, and includes the time a machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def utc_now() -> datetime:
    return datetime.now(UTC)
