"""Why wall clocks of pods are not in the simulator: no decision reads one.

Clocks that decisions do read are modelled: each pod's own, which drifts and may be suspended, and
the database's, which drifts and is set.
"""

import ast
from pathlib import Path

import pytest

import sidecar

_ROOT = Path(sidecar.__file__).parent
_FOLDERS = ("model", "election", "execution", "scheduling", "health")
_WALL_CLOCKS = {"now", "utcnow", "today", "utc_now", "time_ns", "gmtime", "localtime"}
# Arguments and fields called so are times that somebody else has read.
_READERS = {"datetime", "date", "time", "clock"}
_FILES = [_ROOT / "singletons.py"]
_FILES += [path for folder in _FOLDERS for path in sorted((_ROOT / folder).glob("*.py"))]


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_no_decision_reads_a_wall_clock(path: Path) -> None:
    """G1, G4, G10: a pod's wall clock may show anything."""
    calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
    assert [ast.unparse(call) for call in calls if _reads_wall_clock(call.func)] == []


def _reads_wall_clock(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name):
            return name in _WALL_CLOCKS
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return owner in _READERS and (name in _WALL_CLOCKS or (owner, name) == ("time", "time"))
    return False
