"""The clock on which trust is measured: it goes on while the machine sleeps.

Where the kernel has no CLOCK_BOOTTIME the monotonic clock stands in, and readings of the sidecar's
boot time cannot be compared with it.
"""

from __future__ import annotations

import time

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
IS_BOOTTIME = _BOOTTIME is not None


def boottime() -> float:
    """Seconds since boot, suspended time included."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)
