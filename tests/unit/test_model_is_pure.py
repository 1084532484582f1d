"""The model decides and never waits: time and randomness are arguments, I/O belongs to others."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "sidecar" / "model"
WAITING = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


def impurities(source: str) -> Iterator[str]:
    """What in this source waits, or takes from asyncio what waits."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, WAITING) or (isinstance(node, ast.comprehension) and node.is_async):
            yield type(node).__name__
        elif isinstance(node, ast.Import):
            yield from (n.name for n in node.names if n.name.split(".")[0] == "asyncio")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "asyncio":
            yield str(node.module)


def test_the_model_neither_awaits_nor_holds_asyncio_objects() -> None:
    files = sorted(MODEL.rglob("*.py"))
    assert len(files) > 20
    found = {file.name: [*impurities(file.read_text())] for file in files}
    assert not {name: what for name, what in found.items() if what}


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio",
        "import asyncio.locks as l",
        "from asyncio import Event",
        "async def f(): pass",
        "async def f(): await g()",
        "def f():\n    import asyncio",
    ],
)
def test_what_waits_is_found(source: str) -> None:
    assert [*impurities(source)]
