"""What was measured, kept as JSON under `.cache/bench/`, one file per bench.

A bench run alone replaces its own file and no other: the report is always made of all of them.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from devtools.servers import postgres_binaries

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / ".cache" / "bench"


@dataclass(frozen=True, slots=True)
class Measured:
    """One bench: its parts by name, each its data or `{"failed": why}`."""

    name: str
    when: str
    machine: str
    postgres: str
    load_before: float
    seconds: float = 0.0
    load_after: float = 0.0
    parts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def begun(cls, name: str) -> Measured:
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        return cls(name, when, machine(), postgres_version(), round(os.getloadavg()[0], 2))

    def save(self) -> None:
        STORE.mkdir(parents=True, exist_ok=True)
        part = STORE / f"{self.name}.part"
        part.write_text(json.dumps(asdict(self), indent=1))
        part.rename(STORE / f"{self.name}.json")


def load(name: str) -> Measured | None:
    file = STORE / f"{name}.json"
    return Measured(**json.loads(file.read_text())) if file.exists() else None


def machine() -> str:
    """The class of this machine; never its name."""
    model = _proc_field("/proc/cpuinfo", "model name") or platform.machine()
    memory = int((_proc_field("/proc/meminfo", "MemTotal") or "0").split()[0]) / 1024**2
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GB,"
        f" {platform.system()} {platform.release().split('-')[0]},"
        f" Python {platform.python_version()}"
    )


def postgres_version() -> str:
    program = postgres_binaries("auto").bin_dir / "postgres"
    ended = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return ended.stdout.split("(PostgreSQL)")[-1].split()[0] if ended.returncode == 0 else "?"


def _proc_field(file: str, name: str) -> str:
    lines = Path(file).read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table, with the union of their keys as columns."""
    columns = list(dict.fromkeys(key for row in rows for key in row if key != "bench"))
    lines = [columns, ["---"] * len(columns)]
    lines += [[str(row.get(column, "")) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least that share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def spread(samples: Sequence[float], digits: int = 2) -> str:
    """The median and the worst, and of how many."""
    median, worst = statistics.median(samples), max(samples)
    return f"{median:.{digits}f} (worst {worst:.{digits}f}, {len(samples)}×)"


def reason(error: BaseException) -> str:
    """A short text for the report: one line, and no path of this machine."""
    text = re.sub(r"(/[\w.+@-]+){2,}", "…", " ".join(str(error).split()))
    return f"failed: {type(error).__name__}: {text}"[:200]


def failed(part: Any) -> str | None:
    """Why that part has no figures; None if it has."""
    return part["failed"] if isinstance(part, dict) and "failed" in part else None
