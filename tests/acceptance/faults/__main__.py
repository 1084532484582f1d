"""Runs the faults one after another and writes the report; ends with 1 if one breaks a rule."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.acceptance.faults import report
from tests.acceptance.faults.catalogue import FAULTS
from tests.acceptance.faults.run import Fault, Result


def main(names: Sequence[str]) -> int:
    known = {fault.name: fault for fault in FAULTS}
    if unknown := [name for name in names if name not in known]:
        print(f"no such fault: {', '.join(unknown)}; there are: {', '.join(known)}")
        return 2
    results = []
    for fault in [known[name] for name in names] or FAULTS:
        results.append(bounded(fault))
        print(report.line(results[-1]), *results[-1].violations[:20], sep="\n    ", flush=True)
    if not names:
        report.write(results)
        print(f"written: {report.PAGE}, {report.PLOT}")
    return int(any(result.violations for result in results))


def bounded(fault: Fault) -> Result:
    """Its result; a fault that takes longer than its limit has failed."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "result.json"
        command = [sys.executable, "-m", "tests.acceptance.faults.one", fault.name, str(file)]
        process = subprocess.Popen(command)
        try:
            code = process.wait(fault.limit)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            return _failed(fault, f"not over after {fault.limit:.0f} s")
        if code != 0:
            return _failed(fault, f"its process ended with {code}")
        return Result(**json.loads(file.read_text()))


def _failed(fault: Fault, why: str) -> Result:
    return Result(fault.name, fault.about, violations=[f"[run] {why}"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
