"""SQL lives in files, one per intent; this module finds them and puts the schema's name in.

A query is written against the schema `baton`; where the user chose another name, `baton.` is
replaced by it, quoted. Names are qualified everywhere because a `search_path` does not survive a
transaction pooler.

All are read at the start: at its first use there may be no descriptor left to read one with.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_QUALIFIER = re.compile(r"\bbaton\.")
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
    folders = (files("sidecar.adapters.postgres") / "queries").iterdir()
    return {
        f"{folder.name}/{file.name.removesuffix('.sql')}": _bare(file.read_text(encoding="utf-8"))
        for folder in folders
        for file in folder.iterdir()
    }


def _bare(text: str) -> str:
    """Without comments and indentation: psycopg parses texts of over 4,096 bytes at each use."""
    return _INDENTED.sub("\n", _COMMENT.sub("", text)).strip().removesuffix(";")
