"""Runs one fault in a process of its own, so that it can be ended when its time is up.

python -m tests.acceptance.faults.one disk-full result.json
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.acceptance.faults.catalogue import named
from tests.acceptance.faults.run import Result, run


def main(name: str, file: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which stops the servers
    directory = Path(tempfile.mkdtemp(prefix=f"baton-{name}-"))
    directory.chmod(0o755)  # Postgres, as another user, reads the clock there
    fault = named(name)
    try:
        result = run(fault, directory)
    except AssertionError as error:  # it did not even come to a judgement
        result = Result(name, fault.about, violations=[f"[run] {error}"])
    file.write_text(json.dumps(result.as_json()))
    if result.violations:
        print(f"{name}: histories and logs are kept in {directory}")
    else:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
