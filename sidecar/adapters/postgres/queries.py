"""SQL lives in files, one per intent; this module finds them and puts the schema's name in.

A query is written against the schema `baton`; where the user chose another name, `baton.` is
replaced by it, quoted. Names are qualified everywhere because a `search_path` does not survive a
transaction pooler.
"""

import re
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
        self._texts: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """The query in `queries/<name>.sql`."""
        if name not in self._texts:
            self._texts[name] = self.qualified(_text(name))
        return self._texts[name]

    def qualified(self, text: str) -> Any:
        # Any: psycopg wants a LiteralString, and this text comes from our own files alone.
        return _QUALIFIER.sub(lambda _: self._qualifier, text)


def _text(name: str) -> str:
    """Without comments and indentation: psycopg parses texts of over 4,096 bytes at each use."""
    path = files("sidecar.adapters.postgres") / "queries" / f"{name}.sql"
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    return _INDENTED.sub("\n", text).strip().removesuffix(";")
