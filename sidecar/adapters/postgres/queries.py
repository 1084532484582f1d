"""SQL lives in files, one per statement; this module reads them and puts the schema's name in.

A query is written against the schema `baton`; where the user chose another name, `baton.` is
replaced by it, quoted. Names are qualified everywhere because a `search_path` does not survive a
transaction pooler.

A rule that several statements share is written once, in `queries/shared/<name>.sql`: the line
`-- include: <name>` is replaced by it. What such a file expects of the statement around it, its
header says.

All files are read at the start: later there may be no file descriptor left to read one with.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

_SHARED = "shared"
_QUALIFIER = re.compile(r"\bbaton\.")
_INCLUDE = re.compile(r"^\s*-- include: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_INDENTED = re.compile(r"\s*\n\s*")


class Queries:
    """The text of named queries for one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self._qualifier = '"' + schema.replace('"', '""') + '".'
        self._texts = {name: self.qualified(text) for name, text in _texts().items()}

    def __getitem__(self, name: str) -> Any:
        """The query in `queries/<name>.sql`."""
        return self._texts[name]

    def qualified(self, text: str) -> Any:
        # Any: psycopg wants a LiteralString, and this text comes from our own files alone.
        return _QUALIFIER.sub(lambda _: self._qualifier, text)


@cache
def _texts() -> Mapping[str, str]:
    root = files("sidecar.adapters.postgres") / "queries"
    shared = {_stem(file): file.read_text("utf-8") for file in (root / _SHARED).iterdir()}
    return {
        f"{folder.name}/{_stem(file)}": _bare(_included(file.read_text("utf-8"), shared))
        for folder in root.iterdir()
        if folder.name != _SHARED
        for file in folder.iterdir()
    }


def _stem(file: Traversable) -> str:
    return file.name.removesuffix(".sql")


def _included(text: str, shared: Mapping[str, str]) -> str:
    return _INCLUDE.sub(lambda line: "\n" + _included(shared[line[1]], shared), text)


def _bare(text: str) -> str:
    """Without comments and indentation: psycopg parses texts of over 4,096 bytes at each use."""
    return _INDENTED.sub("\n", _COMMENT.sub("", text)).strip().removesuffix(";")
