"""What the apps asked of State while they lived, and what they were answered.

A write is on the file before it is sent, so that one whose answer never came is known too; a read
is written down with its answer. Times are of CLOCK_BOOTTIME, as in the histories.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

# Names of the calls. Writes: `put` of a key of its own, `add` one to a shared key by compare-and-
# set, `count` in the owned state of a singleton. Reads: `strong`, `cached`, `own` (cached, of what
# this very app wrote last), `begin` (the state a singleton was given).
WRITES = ("put", "add", "count")
READS = ("strong", "cached", "own", "begin")


@dataclass(frozen=True, slots=True)
class Op:
    """`number` was written or found; `outcome` is ok, a gRPC code, or empty: it never came."""

    app: str
    kind: str
    key: str
    number: int
    asked_at: float
    answered_at: float | None = None
    outcome: str = ""
    epoch: int = 0
    tries: int = 1

    @property
    def acknowledged(self) -> bool:
        return self.outcome == "ok"


class OpRecorder:
    """Appends to one file; each line is whole and written when the call returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._ids = count(os.getpid() * 1_000_000)

    def asked(self, op: Op) -> int:
        """The number under which the answer is to be given."""
        number = next(self._ids)
        self._write(number, op)
        return number

    def answered(self, number: int, op: Op) -> None:
        self._write(number, op)

    def _write(self, number: int, op: Op) -> None:
        self._file.write(json.dumps({"id": number, **asdict(op)}) + "\n")


def read(paths: Iterable[Path]) -> list[Op]:
    """All calls by the time they were asked; a last line cut off by a kill is left out."""
    ops: dict[tuple[str, int], Op] = {}
    for path in paths:
        for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
            if line.endswith("\n"):
                number, op = _parsed(json.loads(line))
                ops[op.app, number] = op
    return sorted(ops.values(), key=lambda op: op.asked_at)


def _parsed(fields: dict[str, Any]) -> tuple[int, Op]:
    number = int(fields.pop("id"))
    return number, replace(Op(**fields))
