"""Which pages a test reads, by its code: what it and the functions it uses name outside of prose.

So a table that says "this test runs that page" can be wrong, and is found to be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.lab.pages import ROOT


def reads(file: str, function: str, page: str) -> bool:
    """Whether the path of `page`, or its end, is among the strings that `function` comes to."""
    folder, _, name = page.rpartition("/")
    near = file.startswith(f"{folder}/") or not (ROOT / name).exists()  # no page of another folder
    return any(
        pattern.fullmatch(page) or (near and pattern.fullmatch(name))
        for pattern in _strings(file, function, set())
    )


def _strings(file: str, name: str, seen: set[tuple[str, str]]) -> Iterator[re.Pattern[str]]:
    """Of a definition and all that it uses, also from other files of the tests."""
    definitions, imported = _module(file)
    if (file, name) in seen:
        return
    seen.add((file, name))
    if name in imported:
        yield from _strings(*imported[name], seen)
    for node in definitions.get(name, ()):
        yield from _named_in(node)
        for used in sorted(_names(node)):
            yield from _strings(file, used, seen)


@cache
def _module(file: str) -> tuple[dict[str, list[ast.stmt]], dict[str, tuple[str, str]]]:
    """What a file defines at its top, and what it imports from files of the tests."""
    definitions: dict[str, list[ast.stmt]] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            source = f"{(node.module or '').replace('.', '/')}.py"
            if (ROOT / source).is_file():
                imported |= {(one.asname or one.name): (source, one.name) for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            definitions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    definitions.setdefault(target.id, []).append(node)
    return definitions, imported


def _names(node: ast.stmt) -> set[str]:
    """What it uses by name; the arguments of a test are fixtures."""
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return used | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}


def _named_in(node: ast.stmt) -> Iterator[re.Pattern[str]]:
    prose = {
        id(one.value)
        for one in ast.walk(node)
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    }
    parts = {
        id(part) for one in ast.walk(node) if isinstance(one, ast.JoinedStr) for part in one.values
    }
    for one in ast.walk(node):
        if isinstance(one, ast.JoinedStr):
            yield re.compile("".join(map(_pattern, one.values)))
        elif isinstance(one, ast.Constant) and id(one) not in prose | parts:
            yield re.compile(re.escape(str(one.value)))


def _pattern(part: ast.expr) -> str:
    return re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[^/]+"
