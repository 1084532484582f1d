"""The ledger that the apps of a test share: what happened outside of Baton, in the order of time.

A file of JSON lines; each is on the disk before its writer goes on, and carries `at`, the time on
the boottime clock. Nothing of the sidecar is imported here: apps on the client use it too.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Ledger:
    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: str, **fields: Any) -> None:
        at = time.clock_gettime(time.CLOCK_BOOTTIME)
        line = json.dumps({"event": event, "at": at, "pid": os.getpid(), **fields})
        with self.path.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self, event: str = "", **wanted: Any) -> list[dict[str, Any]]:
        """All lines of that kind; a line that is still being written is none."""
        text = self.path.read_text() if self.path.exists() else ""
        rows = [json.loads(row) for row in text.splitlines(keepends=True) if row.endswith("}\n")]
        wanted |= {"event": event} if event else {}
        return [row for row in rows if wanted.items() <= row.items()]

    def wait(
        self, event: str, count: int = 1, timeout: float = 60, **wanted: Any
    ) -> list[dict[str, Any]]:
        """The lines of that kind, once there are so many."""
        deadline = time.monotonic() + timeout
        while len(found := self.lines(event, **wanted)) < count:
            if time.monotonic() > deadline:
                told = "\n".join(map(str, self.lines()[-20:]))
                raise AssertionError(f"not within {timeout} s: {count} × {event} {wanted}\n{told}")
            time.sleep(0.02)
        return found
